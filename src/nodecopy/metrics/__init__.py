"""Metrics of graph structure, class probabilities, ranked lists and significance."""

from nodecopy.metrics.classification import TemperatureScaling as TemperatureScaling
from nodecopy.metrics.ranking import Evaluation as Evaluation
from nodecopy.metrics.structure import Comparison as Comparison
from nodecopy.metrics.structure import compare as compare
from nodecopy.metrics.structure import edge_overlap as edge_overlap
from nodecopy.metrics.structure import statistics as statistics
