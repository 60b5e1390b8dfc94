"""Graphs from features: nearest-neighbour graphs and learned graphs."""

from nodecopy.features.feature_files import read_feature_graph as read_feature_graph
from nodecopy.features.feature_graphs import graph_from_features as graph_from_features
