"""The example of a web service: its logic, and the routes that lead to it."""

from __future__ import annotations

import runpy
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from examples.serving.service import RecommendationService
from nodecopy import Interactions, datasets
from nodecopy.errors import InputError
from nodecopy.recommend import EASE, CopyEASE

LIBRARY = datasets.load("library")
READER, OTHER = LIBRARY.user_ids[:2].tolist()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    CopyEASE().fit(LIBRARY).save(tmp_path / "model.npz")
    return tmp_path / "model.npz"


def names(recommendations: list[dict[str, Any]]) -> list[Any]:
    return [entry["item"] for entry in recommendations]


def test_lists_and_explanations_are_those_of_the_model(path: Path) -> None:
    service, model = RecommendationService(path), CopyEASE().fit(LIBRARY)
    items, scores = model.recommend([READER], 3)
    assert service.recommend(READER, 3) == [
        {"item": item, "score": score}
        for item, score in zip(items[0].tolist(), scores[0].tolist(), strict=True)
    ]
    assert service.explain(READER, items[0, 0], 2) == model.explain(READER, items[0, 0], 2).to_dict()


@pytest.mark.parametrize("user", [READER, "somebody new"])
def test_new_rows_count_at_once_and_are_fitted_by_update(user: str, path: Path) -> None:
    service, model = RecommendationService(path), CopyEASE().fit(LIBRARY)
    new = names(service.recommend(user, 2))
    assert service.add(user, [*new, new[0], "a new title"]) == 3
    known = LIBRARY.item_ids[LIBRARY.matrix[[0]].indices].tolist() if user == READER else []
    assert names(service.recommend(user, 5)) == model.recommend_new([known + new], 5)[0][0].tolist()
    explained = service.explain(user, "Dracula", 30, donors=False)["items"]
    assert new[0] in names(explained)
    assert service.update() == 3
    rows = Interactions.from_table([user] * 3, [*new, "a new title"])
    fitted = model.partial_fit(rows)
    assert names(service.recommend(user, 5)) == fitted.recommend([user], 5)[0][0].tolist()
    reloaded = RecommendationService(path)
    assert names(reloaded.recommend(OTHER, 5)) == fitted.recommend([OTHER], 5)[0][0].tolist()
    assert service.update() == 0


def test_what_was_seen_stays_excluded_beside_new_rows(tmp_path: Path) -> None:
    train = LIBRARY.select(np.arange(LIBRARY.n_interactions) % 2 == 0)
    EASE(10.0).fit(train, seen=LIBRARY).save(tmp_path / "model.npz")
    service = RecommendationService(tmp_path / "model.npz")
    service.add(READER, names(service.recommend(READER, 1)))
    seen = LIBRARY.item_ids[LIBRARY.matrix[[0]].indices].tolist()
    assert not set(names(service.recommend(READER, 20))) & set(seen)


def test_rows_during_an_update_wait_for_the_next(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service, partial_fit = RecommendationService(path), CopyEASE.partial_fit

    def add_and_fit(self: CopyEASE, interactions: Interactions) -> CopyEASE:
        service.add(READER, ["late"])
        return partial_fit(self, interactions)

    service.add(READER, ["early"])
    monkeypatch.setattr(CopyEASE, "partial_fit", add_and_fit)
    assert service.update() == 1
    monkeypatch.undo()
    assert "early" in service.model.interactions_.item_ids
    assert service.update() == 1


def test_threads_may_read_add_and_update_together(path: Path) -> None:
    service = RecommendationService(path)
    users = LIBRARY.user_ids[:8].tolist()

    def use(number: int) -> int:
        service.add(users[number % 8], [f"title {number}"])
        if number % 8 == 0:
            service.update()
        return len(service.recommend(users[number % 8], 3))

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(use, range(24))) == [3] * 24
    service.update()
    assert {f"title {number}" for number in range(24)} <= set(service.model.interactions_.item_ids.tolist())


def test_ids_take_the_type_of_training_and_wrong_ones_are_refused(tmp_path: Path) -> None:
    EASE(1.0).fit(Interactions([[1, 1, 0], [1, 1, 1]])).save(tmp_path / "model.npz")
    service = RecommendationService(tmp_path / "model.npz")
    assert service.recommend("0", 3)[0]["item"] == 2
    assert len(service.recommend("0", 3)) == 1
    with pytest.raises(InputError, match=r"user must be an integer, as in training; got 'ann'"):
        service.recommend("ann")
    with pytest.raises(InputError, match=r"item must be an integer"):
        service.add("0", ["tea"])
    with pytest.raises(InputError, match="item must not be empty"):
        service.add("0", [""])
    with pytest.raises(InputError, match="must hold known ids; got 7"):
        service.explain("0", "7")
    assert service.add("0", [7, "8"]) == service.n_waiting == 2


def test_ids_that_no_update_could_fit_are_refused_at_once(path: Path) -> None:
    service = RecommendationService(path)
    with pytest.raises(InputError, match="items must not hold the character NUL"):
        service.add(READER, ["Dracula", "a\0b"])
    assert (service.n_waiting, service.add(READER, [])) == (0, 0)


class RecordedApp:
    """Stands for FastAPI: it stores the function of each route."""

    def __init__(self, title: str) -> None:
        self.routes: dict[Any, Any] = {}

    def get(self, route: Any, **_: Any) -> Any:
        return lambda function: self.routes.setdefault(route, function)

    post = exception_handler = get


def test_the_routes_lead_to_the_service(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names_of: dict[str, dict[str, Any]] = {
        "fastapi": {"FastAPI": RecordedApp, "BackgroundTasks": object, "Request": object},
        "fastapi.exceptions": {"RequestValidationError": ValueError},
        "fastapi.responses": {"JSONResponse": lambda content, status_code: (status_code, content)},
    }
    for name, values in names_of.items():
        module = ModuleType(name)
        vars(module).update(values)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setenv("MODEL", str(path))
    routes = runpy.run_module("examples.serving.app")["app"].routes
    best = names(routes["/users/{user}/recommendations"](READER, 1))
    assert routes["/users/{user}/items"](READER, best) == {"n_waiting": 1}
    assert names(routes["/users/{user}/recommendations"](READER, 1)) != best
    assert routes["/users/{user}/explanations/{item:path}"](READER, best[0], 1)
    assert routes[InputError](None, InputError("no")) == (422, {"error": "no"})
    assert routes["/update"]


def test_requests_to_the_web_service(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs where FastAPI is installed, which is no extra of the package."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # starlette's on versions of httpx
        test_client = pytest.importorskip("fastapi.testclient", exc_type=ImportError).TestClient
    monkeypatch.setenv("MODEL", str(path))
    client = test_client(runpy.run_module("examples.serving.app")["app"])
    best = client.get(f"/users/{READER}/recommendations", params={"k": 2}).json()
    assert len(best) == 2
    url = f"/users/{READER}/explanations/{best[0]['item']}"
    assert set(client.get(url).json()) == {"score", "items"}
    assert set(client.get(url, params={"donors": True}).json()) == {"score", "items", "donors", "donor_items"}
    assert client.post(f"/users/{READER}/items", json=names(best)).json() == {"n_waiting": 2}
    assert not set(names(client.get(f"/users/{READER}/recommendations").json())) & set(names(best))
    assert client.post("/update").status_code == 202  # the client waits for the update
    assert client.post("/update").json() == {"n_waiting": 0}
    for answer, message in (
        (client.get(f"/users/{READER}/recommendations", params={"k": 0}), "k must be an integer between 1"),
        (client.get(f"/users/{READER}/recommendations", params={"k": "x"}), "query k: "),
        (client.get(f"/users/{READER}/explanations/nothing"), "item must hold known ids; got 'nothing'"),
        (client.get("/users/nobody/explanations/Dracula"), "history must have an item of training; got none"),
        (client.post(f"/users/{READER}/items", json={"item": 1}), "body: Input should be a valid list"),
        (client.post(f"/users/{READER}/items", json=["a\0b"]), "items must not hold the character NUL"),
    ):
        assert answer.status_code == 422
        assert message in answer.json()["error"]
