"""Compiles the bridge to Java clients into the wheel. Without a JDK the wheel is built without it."""

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class BridgeHook(BuildHookInterface):
    """Adds ``jmsjca/providers/java/bridge.jar``."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile the jar, except for an editable installation, which compiles it at the first use."""
        if version == "editable":
            return
        sys.path.insert(0, self.root)
        from jmsjca.providers.java.bridge import build  # needs no other package

        jar = Path(self.directory) / "bridge.jar"
        try:
            build(jar)
        except FileNotFoundError as missing:
            self.app.display_warning(f"The wheel has no bridge to JMS clients of Java: {missing}")
            return
        build_data["force_include"][str(jar)] = "jmsjca/providers/java/bridge.jar"
