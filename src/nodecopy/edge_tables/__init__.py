"""Node copying on edge tables larger than memory, inside an engine; ``model.py`` has the join.

Ibis is imported when an engine is opened.
"""

from nodecopy.edge_tables.donors import JaccardTable as JaccardTable
from nodecopy.edge_tables.donors import NearestNeighboursTable as NearestNeighboursTable
from nodecopy.edge_tables.donors import SameLabelTable as SameLabelTable
from nodecopy.edge_tables.donors import WeightedTable as WeightedTable
from nodecopy.edge_tables.engines import DuckDB as DuckDB
from nodecopy.edge_tables.engines import Spark as Spark
from nodecopy.edge_tables.model import EdgeTableCopying as EdgeTableCopying
from nodecopy.edge_tables.model import edge_table_statistics as edge_table_statistics
