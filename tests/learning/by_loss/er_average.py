"""ER with a momentum memory: replayed instances keep the logits of an average of past parameters."""

from clops_sweep import FloatOption, IntOption, OptunaSearch, Reservoir, RunConfig, SearchSpace, Strategy, strategy

OPTIONS = {
    "average_decay": FloatOption(0.99, ge=0, lt=1),
    "average_weight": FloatOption(0.5, ge=0, le=2),
    "average_memory": IntOption(200, ge=1),
}


@strategy("er_average", options=OPTIONS)
class AveragedReplay(Strategy):
    def setup(self):
        self.memory = Reservoir(self.options.average_memory)
        self.average = self.parameters.detach().clone()

    def loss(self, batch):
        decay = self.options.average_decay
        self.average = decay * self.average + (1 - decay) * self.parameters.detach()
        loss = self.criterion(self.model(batch.x), batch.y)
        if self.memory:
            old = self.memory.sample(len(batch))
            logits, averaged = self.model(old.x), self.predict(old.x, self.average)
            pull = (logits - averaged).square().mean()
            loss = loss + self.criterion(logits, old.y) + self.options.average_weight * pull
        self.memory.offer(batch)
        return loss


SPACE = SearchSpace(
    "er_average",
    RunConfig(strategy="er_average", epochs_per_task=2),
    seeds=range(2),
    search=OptunaSearch({"average_decay": None, "average_weight": None}, n_trials=4),
)
