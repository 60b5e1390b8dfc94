"""Node copying on edge tables larger than memory, inside an engine (:mod:`nodecopy.edge_tables.engines`).

Read :mod:`.model` first (the join), then :mod:`.laws` (who may be whose donor) and :mod:`.draws`
(randomness as arithmetic that every engine shares). Ibis is imported when an engine is opened.
"""

from nodecopy.edge_tables.donor_tables import LabelTable as LabelTable
from nodecopy.edge_tables.donor_tables import NeighbourTable as NeighbourTable
from nodecopy.edge_tables.donor_tables import SharedItems as SharedItems
from nodecopy.edge_tables.donor_tables import WeightTable as WeightTable
from nodecopy.edge_tables.engines import DuckDB as DuckDB
from nodecopy.edge_tables.engines import Spark as Spark
from nodecopy.edge_tables.table_copying import TableCopying as TableCopying
