"""EWC: a quadratic penalty weighted by the Fisher information of past tasks (Kirkpatrick et al., 2017)."""

from __future__ import annotations

from clops_sweep.learning.method.fisher import fisher_information
from clops_sweep.learning.strategies.quadratic_penalty import QuadraticPenalty


class ElasticWeightConsolidation(QuadraticPenalty):
    """L + lambda / 2 sum_k sum_p F_kp (theta_p - theta*_kp)^2 over all past tasks k.

    theta*_k are the parameters at the end of task k, lambda is `ewc_strength`, and F_k the diagonal of the empirical
    Fisher information there,

        F_kp = 1 / n sum_i (d log p(y_i | x_i) / d theta_p)^2

    over the task's n training instances, in evaluation mode. The likelihood of several labels is the product of theirs.

    Up to a constant, the sum of these parabolas is one parabola with importance sum_k F_k about the mean of the
    theta*_k weighted by F_k. So the state does not grow with the number of tasks.

    With `ewc_online` (Schwarz et al., 2018) there is one parabola about the latest theta*, with importance
    F <- gamma F + F_k and gamma = `ewc_decay`.
    """

    def end_task(self, task: int) -> None:
        """Add the Fisher information of the task."""
        if task + 1 == len(self.training.tasks):
            return  # nothing is trained after the last task
        learner, options = self.learner, self.config.options
        fisher = fisher_information(learner, self.training.tasks[task]).mul_(options["ewc_strength"])
        parameters = learner.parameters.flat
        if options["ewc_online"]:
            self.penalty.importance.mul_(options["ewc_decay"]).add_(fisher)
            self.penalty.centre.copy_(parameters)
        else:
            self.penalty.importance.add_(fisher)
            share = (fisher / self.penalty.importance).nan_to_num_(0.0)  # 0 / 0 if no task needs a parameter
            self.penalty.centre.add_((parameters - self.penalty.centre).mul_(share))
