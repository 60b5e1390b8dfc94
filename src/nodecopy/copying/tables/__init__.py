"""Node copying on edge tables larger than memory, inside an engine (:mod:`nodecopy.engines`).

Read :mod:`.model` first (the join), then :mod:`.laws` (who may be whose donor) and :mod:`.draws`
(randomness as arithmetic that every engine shares). Ibis is imported when an engine is opened.
"""

from nodecopy.copying.tables.laws import LabelTable as LabelTable
from nodecopy.copying.tables.laws import NeighbourTable as NeighbourTable
from nodecopy.copying.tables.laws import SharedItems as SharedItems
from nodecopy.copying.tables.laws import WeightTable as WeightTable
from nodecopy.copying.tables.model import TableCopying as TableCopying
from nodecopy.engines import DuckDB as DuckDB
from nodecopy.engines import Spark as Spark
