"""The provider of JMS clients of Java, which run in a Java process beside this one."""
