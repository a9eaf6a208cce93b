"""What providers share. It imports no provider."""
