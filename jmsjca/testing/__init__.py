"""For tests of programs that use jmsjca, and of providers: pytest fixtures and the provider contract suite."""
