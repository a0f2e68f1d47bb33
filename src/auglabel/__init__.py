"""What label should an augmented image carry? AutoLabel learns it, per transformation distance."""

from auglabel.augment.base import Augmentation
from auglabel.augment.randaug import RandAug
from auglabel.autolabel import AutoLabel
from auglabel.calibration import Calibration
from auglabel.distance import Distance, DistanceGrid
from auglabel.labels import FixedTable, LabelPolicy, LabelSmoothing, OneHot
from auglabel.measure import calibrate, every_bucket, measure
from auglabel.tablefile import load_table, save_table
from auglabel.view import View

__version__ = "0.1.0"

__all__ = [
    "Augmentation",
    "AutoLabel",
    "Calibration",
    "Distance",
    "DistanceGrid",
    "FixedTable",
    "LabelPolicy",
    "LabelSmoothing",
    "OneHot",
    "RandAug",
    "View",
    "calibrate",
    "every_bucket",
    "load_table",
    "measure",
    "save_table",
]
