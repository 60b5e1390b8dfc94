"""A recommender as a web service: ``MODEL=model.npz uvicorn nodecopy.examples.serving.app:app``.

It needs ``fastapi`` and ``uvicorn``, which are not among the extras of the package. In a checkout of the
repository, the module is ``examples.serving.app``; copies of the folder may have any name.
"""

from __future__ import annotations

import os
from typing import Any

from fastapi import BackgroundTasks, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse

from nodecopy.errors import InputError

from .service import RecommendationService

service = RecommendationService(os.environ["MODEL"])
app = FastAPI(title="Recommendations")


@app.get("/users/{user}/recommendations")
def recommend(user: str, k: int = 10) -> list[dict[str, Any]]:
    return service.recommend(user, k)


@app.get("/users/{user}/explanations/{item:path}")
def explain(user: str, item: str, k: int = 3, donors: bool = False) -> dict[str, Any]:
    return service.explain(user, item, k, donors)


@app.post("/users/{user}/items")
def add(user: str, items: list[str | int]) -> dict[str, int]:
    return {"n_waiting": service.add(user, items)}


@app.post("/update", status_code=202)
def update(tasks: BackgroundTasks) -> dict[str, int]:
    tasks.add_task(service.update)
    return {"n_waiting": service.n_waiting}


@app.exception_handler(InputError)
def refuse(request: Request, error: InputError) -> JSONResponse:
    return JSONResponse({"error": str(error)}, status_code=422)


@app.exception_handler(RequestValidationError)
def refuse_request(request: Request, error: RequestValidationError) -> JSONResponse:
    first = error.errors()[0]
    place = " ".join(str(part) for part in first["loc"])
    return JSONResponse({"error": f"{place}: {first['msg']}; got {first['input']!r}."}, status_code=422)
