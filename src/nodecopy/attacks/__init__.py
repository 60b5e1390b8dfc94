"""Attacks on graphs (the paper's section 6): flips of edges that make classifiers err at some nodes.

Read :mod:`.base` for the contract and :mod:`.perturbation` for what an attack returns.
"""

from nodecopy.attacks.base import Attack as Attack
from nodecopy.attacks.dice import DICE as DICE
from nodecopy.attacks.dice import GlobalDICE as GlobalDICE
from nodecopy.attacks.dice import RandomFlips as RandomFlips
from nodecopy.attacks.fga import FGA as FGA
from nodecopy.attacks.nettack import Nettack as Nettack
from nodecopy.attacks.perturbation import Perturbation as Perturbation
from nodecopy.attacks.through_copying import ThroughCopying as ThroughCopying
