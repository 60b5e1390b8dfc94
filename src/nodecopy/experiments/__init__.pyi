from nodecopy.experiments.config import load as load
from nodecopy.experiments.rendering import summarise as summarise
from nodecopy.experiments.runner import run as run
from nodecopy.experiments.store import Store as Store
from nodecopy.experiments.tasks import Task as Task
from nodecopy.experiments.tasks.generate import ObservedGraph as ObservedGraph

__all__: list[str]
