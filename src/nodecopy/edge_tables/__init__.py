"""Node copying on edge tables larger than memory, inside an engine (:mod:`nodecopy.edge_tables.engines`).

Read :mod:`.model` first (the join), then :mod:`.laws` (who may be whose donor) and :mod:`.draws`
(randomness as arithmetic that every engine shares). Ibis is imported when an engine is opened.
"""

from nodecopy.edge_tables.donor_tables import JaccardTable as JaccardTable
from nodecopy.edge_tables.donor_tables import NearestNeighboursTable as NearestNeighboursTable
from nodecopy.edge_tables.donor_tables import SameLabelTable as SameLabelTable
from nodecopy.edge_tables.donor_tables import WeightedTable as WeightedTable
from nodecopy.edge_tables.engines import DuckDB as DuckDB
from nodecopy.edge_tables.engines import Spark as Spark
from nodecopy.edge_tables.table_copying import EdgeTableCopying as EdgeTableCopying
from nodecopy.edge_tables.table_statistics import edge_table_statistics as edge_table_statistics
