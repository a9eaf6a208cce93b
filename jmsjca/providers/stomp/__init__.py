"""The STOMP provider, built on stomp.py."""
