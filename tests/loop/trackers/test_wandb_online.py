"""Weights & Biases online, against a stand-in for its library: a kill takes rows that had not arrived."""

import importlib.machinery
import sys
import types

import pytest

from headrace.errors import TrackerWarning
from headrace.loop.trackers import RunInfo, WandB
from headrace.loop.trackers import wandb as room


class Server:
    """Holds rows by id; `lose` forgets the last ones, as if they had not arrived before a kill."""

    def __init__(self):
        self.rows, self.inits = {}, []

    def lose(self, number):
        (rows,) = self.rows.values()
        del rows[len(rows) - number :]

    def init(self, **arguments):
        self.inits.append(arguments)
        rows = self.rows.setdefault(arguments["id"], [])
        return types.SimpleNamespace(
            config=types.SimpleNamespace(update=lambda *_, **__: None),
            define_metric=lambda *_, **__: None,
            resumed=bool(rows),
            summary={"step": rows[-1]["step"]} if rows else {},
            log=lambda row: rows.append(dict(row)),
            finish=lambda exit_code: None,
        )


@pytest.fixture
def server(monkeypatch):
    server = Server()
    module = types.ModuleType("wandb")
    module.__spec__ = importlib.machinery.ModuleSpec("wandb", None)
    module.init = server.init
    settings = types.SimpleNamespace(mode="online", base_url="https://example.invalid", api_key="k")
    module.setup = lambda: types.SimpleNamespace(settings=settings)
    server.settings = settings
    monkeypatch.setitem(sys.modules, "wandb", module)
    for name in ("WANDB_MODE", "WANDB_API_KEY", "WANDB_IDENTITY_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    return server


def begun(folder, state=None, resumed_at=None, **more):
    tracker = WandB("p", **more)
    if state:
        tracker.load_state_dict(state)
    tracker.start(RunInfo(name="digits", folder=folder, resumed_at=resumed_at))
    return tracker


@pytest.mark.parametrize("num_lost", range(8))
def test_rows_that_did_not_arrive_are_given_again_and_no_others(server, tmp_path, num_lost):
    tracker = begun(tmp_path, mode="online")
    for step in range(1, 5):
        tracker.log({"loss": step / 2}, step)
    state = tracker.state_dict()
    for step in range(5, 8):
        tracker.log({"loss": step / 2}, step)
    server.lose(num_lost)
    tracker = begun(tmp_path, state, resumed_at=4, mode="online")
    for step in range(5, 10):
        tracker.log({"loss": step / 2}, step)
    tracker.finish("finished")
    assert server.rows == {state["run_id"]: [{"step": step, "loss": step / 2} for step in range(1, 10)]}
    assert {init["resume"] for init in server.inits} == {"allow"}


def test_no_key_means_offline_and_says_so(server, tmp_path, monkeypatch):
    server.settings.api_key = None
    monkeypatch.setenv("NETRC", str(tmp_path / "none"))
    with pytest.warns(TrackerWarning, match=r"keeps this run in .* only: there is no API key"):
        begun(tmp_path)
    assert server.inits[0]["mode"] == "offline"


def test_a_key_in_netrc_is_one(server, tmp_path, monkeypatch):
    server.settings.api_key = None
    (tmp_path / "netrc").write_text("machine example.invalid login user password k\n", encoding="utf-8")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setattr(room, "_is_reached", lambda server: True)
    begun(tmp_path)
    assert server.inits[0]["mode"] == "online"


def test_no_way_to_the_server_means_offline_and_says_so(server, tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise OSError("no route")

    monkeypatch.setattr(room.socket, "create_connection", refuse)
    with pytest.warns(TrackerWarning, match=r"only: example\.invalid cannot be reached; `wandb sync"):
        begun(tmp_path)
    assert server.inits[0]["mode"] == "offline"


@pytest.mark.parametrize("mode", ["online", "offline", "disabled"])
def test_what_is_asked_for_is_done(server, tmp_path, mode):
    begun(tmp_path, mode=mode)
    assert server.inits[0]["mode"] == mode
