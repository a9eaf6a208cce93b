"""The STOMP protocol, versions 1.1 and 1.2: frames, heart-beats, receipts, session and transport."""
