"""The STOMP provider, on stomp.py."""
