"""An Artemis with a user whose password is found nowhere else."""

from brokers.products import Artemis

USER, PASSWORD = "spark", "pa55-F0r-Spark"


class GuardedArtemis(Artemis):
    """A broker of its own, with one user more."""

    def command(self, home):
        users, roles = (self.folder / "conf" / f"{name}.properties" for name in ("users", "roles"))
        users.write_text(f"{users.read_text()}\n{USER} = {PASSWORD}\n")
        roles.write_text(roles.read_text().replace("all = jmsjca", f"all = jmsjca,{USER}"))
        return super().command(home)
