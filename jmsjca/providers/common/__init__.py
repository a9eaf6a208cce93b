"""Code that the providers share. It imports no provider."""
