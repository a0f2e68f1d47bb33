"""AutoLabel with targets from a network's own prediction on the clean image."""

from __future__ import annotations

from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from auglabel.autolabel import AutoLabel
from auglabel.errors import UserError
from auglabel.util.checks import kind_of, require_range
from auglabel.util.inference import eval_mode, model_input, unwrapped
from auglabel.view import View


class SelfDistilled(AutoLabel):
    """AutoLabel that mixes in a prediction q on the clean image until the mean confidence is the bucket's, c.

    With m the mean over the batch of q_y, the probability that q has for the true class y:

        c >= m:  t = (1 - a) onehot + a q,  a = (1 - c) / (1 - m)
        c <  m:  t = (1 - b) q + b / K,     b = (m - c) / (m - 1/K)

    Buckets are drawn without looking at the image, so the mean of t_y over a bucket's images is c: less for
    those that q doubts, more for others. Where labels are to be less sure than q, q is softened evenly.

    q is `view.prediction`, which `with_prediction` sets; in training by `auglabel train` it is that of the
    averaged weights (`--ema`). For a mixed image it is that on its main part, so prefer other augmentations.
    """

    needs_prediction = True

    def forward(self, view: View) -> Tensor:
        if view.prediction is None:
            raise UserError(
                "SelfDistilled needs predictions on the clean images: with_prediction(view, images, teacher)."
            )
        require_range("view.labels", view.labels, self.num_classes, "classes")
        if view.prediction.shape[1:] != (self.num_classes,):
            raise UserError(
                f"view.prediction must have shape (B, {self.num_classes}), got {kind_of(view.prediction)}."
            )
        q, sure = view.prediction, self.confidence(view)
        mean, tiny = q.gather(1, view.labels[:, None]).mean(), torch.finfo(q.dtype).eps
        a = ((1 - sure) / (1 - mean).clamp(min=tiny)).clamp(0, 1)[:, None]
        b = ((mean - sure) / (mean - 1 / self.num_classes).clamp(min=tiny)).clamp(0, 1)[:, None]
        target = (1 - a) * F.one_hot(view.labels, self.num_classes) + a * q
        return (1 - b) * target + b / self.num_classes


@torch.no_grad()
def with_prediction(view: View, images: Tensor, teacher: nn.Module) -> View:
    """`view` with the probabilities that `teacher`, in evaluation mode, has for its clean `images`."""
    teacher = unwrapped(teacher)
    with eval_mode(teacher):
        logits = teacher(model_input(images, teacher))
    return replace(view, prediction=logits.float().softmax(dim=1))
