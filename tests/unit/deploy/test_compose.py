"""The compose file for a look at a fleet agrees with the product."""

from pathlib import Path
from typing import Any

import yaml

from core.base.paths import FILE_NAME
from core.config.loading import load

FOLDER = Path(__file__).parents[3] / "deploy" / "fleet"


def compose() -> Any:
    """Return the file."""
    return yaml.safe_load((FOLDER / "compose.yaml").read_text(encoding="utf-8"))


def test_each_host_has_a_valid_configuration_of_its_own(tmp_path: Path) -> None:
    """Their names differ, one may be the gateway, and each is mounted where the service looks for it."""
    told, found = compose(), {}
    for name, config in told["configs"].items():
        path = tmp_path / f"{name}.yaml"
        path.write_text(config["content"])
        found[name] = load(path, {"HOME": str(tmp_path)})
        [mounted] = told["services"][name]["configs"]
        assert mounted == {"source": name, "target": f"/home/loop/.config/the-loop/{FILE_NAME}"}

    assert {name: (one.fleet.host, one.fleet.enabled) for name, one in found.items()} == {
        "hub": ("hub", True),
        "build": ("build", True),
    }
    assert [name for name, one in found.items() if one.fleet.gateway] == ["hub"]
    assert len({session.name for one in found.values() for session in one.standing.sessions}) == 2


def test_no_secret_stands_in_it_and_what_must_outlive_a_container_is_a_volume() -> None:
    """Every volume is declared, and the agents have the time that the service needs to end them."""
    told = compose()
    used = {volume.partition(":")[0] for one in told["services"].values() for volume in one["volumes"]}

    assert used == told["volumes"].keys() == {"db", "hub", "build"}
    assert told["services"]["db"]["environment"]["POSTGRES_PASSWORD"].startswith("${FLEET_SECRET:?")
    assert {told["services"][name]["stop_grace_period"] for name in ("hub", "build")} == {"60s"}
