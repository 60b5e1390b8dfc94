from nodecopy.experiments.runner import run as run
from nodecopy.experiments.store import Store as Store
from nodecopy.experiments.summary import summarise as summarise
from nodecopy.experiments.tasks.base import Task as Task
from nodecopy.experiments.tasks.generate_task import ObservedGraph as ObservedGraph
from nodecopy.experiments.toml import load as load

__all__: list[str]
