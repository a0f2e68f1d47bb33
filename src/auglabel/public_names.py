"""The public names, which `auglabel` itself hands out."""

from auglabel import metrics
from auglabel.attack.pgd import pgd
from auglabel.augment.adversarial import Adversarial
from auglabel.augment.augmix import AugMix
from auglabel.augment.base import Augmentation
from auglabel.augment.clean import Clean
from auglabel.augment.mixing import CutMix, Mixup
from auglabel.augment.occlusion import Erasing, WideCrop
from auglabel.augment.randaug import RandAug
from auglabel.augment_and_label import AugmentAndLabel
from auglabel.autolabel import AutoLabel
from auglabel.by_class import AutoLabelByClass
from auglabel.calibration import Calibration
from auglabel.distance import Distance, DistanceGrid
from auglabel.labels import CCAT, FixedTable, LabelPolicy, LabelSmoothing, MixupLabels, OneHot, TablePolicy
from auglabel.measure import calibrate, every_bucket, measure
from auglabel.pooling import Pool, PooledCalibration
from auglabel.scaling import IsotonicScaling, TemperatureScaling, VectorScaling
from auglabel.self_distilled import SelfDistilled, with_prediction
from auglabel.soft_augmentation import SoftAugmentation
from auglabel.table_file import load_table, save_table
from auglabel.view import View

__all__ = [
    "CCAT",
    "Adversarial",
    "AugMix",
    "AugmentAndLabel",
    "Augmentation",
    "AutoLabel",
    "AutoLabelByClass",
    "Calibration",
    "Clean",
    "CutMix",
    "Distance",
    "DistanceGrid",
    "Erasing",
    "FixedTable",
    "IsotonicScaling",
    "LabelPolicy",
    "LabelSmoothing",
    "Mixup",
    "MixupLabels",
    "OneHot",
    "Pool",
    "PooledCalibration",
    "RandAug",
    "SelfDistilled",
    "SoftAugmentation",
    "TablePolicy",
    "TemperatureScaling",
    "VectorScaling",
    "View",
    "WideCrop",
    "calibrate",
    "every_bucket",
    "load_table",
    "measure",
    "metrics",
    "pgd",
    "save_table",
    "with_prediction",
]
