"""Games of the Arcade Learning Environment, played by an actor-critic as it learns."""

from __future__ import annotations

import io
import pickle

import numpy as np
import torch
from torch._subclasses.fake_tensor import FakeTensor

__all__ = ["Games"]

_FRAMES, _HIDDEN = 4, 256


class Games:
    """Games by number, each of which goes on where it was.

    An observation is the last four frames of 84 x 84 pixels, every fourth frame of the game, as the paper has them. The
    actions are drawn from the policy by PyTorch's generator; rewards count by their sign.

    Parameters
    ----------
    game : str
        By gymnasium's name: "ALE/Pong-v5".
    steps : int
        Between updates.
    discount : float
        Of the reward of a step later.
    longest : int
        Steps of a game in an evaluation, at most.
    """

    def __init__(self, game: str, *, steps: int = 5, discount: float = 0.99, longest: int = 2000) -> None:
        self.game, self.steps, self.discount, self.longest = game, steps, discount, longest
        self._playing: dict[int, tuple] = {}  # environment, frames, and what the LSTM remembers
        self.actions = int(self._environment().action_space.n)

    def _environment(self):
        import ale_py
        import gymnasium

        gymnasium.register_envs(ale_py)
        return gymnasium.wrappers.AtariPreprocessing(gymnasium.make(self.game, frameskip=1))

    @staticmethod
    def _begun(environment, seed: int | None = None) -> np.ndarray:
        frame, _ = environment.reset(seed=seed)
        return np.repeat(frame[None], _FRAMES, 0)

    def _of(self, number: int) -> list:
        if number not in self._playing:
            environment = self._environment()
            self._playing[number] = [environment, self._begun(environment, number), torch.zeros(2, _HIDDEN)]
        return self._playing[number]

    def loss(self, model, numbers: list[int], rule):
        """The loss of a few steps of some games, by a rule that takes policies, values, actions and returns."""
        fake = isinstance(next(model.parameters()), FakeTensor)  # which hold no numbers: nothing is played
        playing = None if fake else [self._of(number) for number in numbers]
        count = len(numbers)
        remembered = torch.zeros(2, count, _HIDDEN) if fake else torch.stack([kept for *_, kept in playing], 1)
        state = tuple(part[None] for part in remembered)
        policies, values, actions, rewards, going = [], [], [], [], []
        for _ in range(self.steps):
            policy, value, state = model(self._seen(playing, count), state)
            chosen = torch.multinomial(policy[0].detach().exp(), 1)[:, 0]
            gained, on = (torch.zeros(count), torch.ones(count)) if fake else self._play(playing, chosen.tolist())
            state = tuple(part * on[:, None] for part in state)
            policies.append(policy[0])
            values.append(value[0])
            actions.append(chosen)
            rewards.append(gained)
            going.append(on)
        with torch.no_grad():
            _, value, _ = model(self._seen(playing, count), state)
        returns, last = [], value[0]
        for gained, on in zip(reversed(rewards), reversed(going), strict=True):
            last = gained + self.discount * on * last
            returns.append(last)
        for game, *kept in zip(playing or (), *(part[0].detach() for part in state), strict=bool(playing)):
            game[2] = torch.stack(kept)
        return rule(torch.stack(policies), torch.stack(values), torch.stack(actions), torch.stack(returns[::-1]))

    @staticmethod
    def _seen(playing, count: int) -> torch.Tensor:
        if playing is None:
            return torch.zeros(1, count, _FRAMES, 84, 84)
        return torch.from_numpy(np.stack([frames for _, frames, _ in playing])[None]).float() / 255

    def _play(self, playing, chosen: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
        gained, going = [], []
        for game, action in zip(playing, chosen, strict=True):
            frame, reward, ended, cut, _ = game[0].step(action)
            game[1] = self._begun(game[0]) if ended or cut else np.concatenate([game[1][1:], frame[None]])
            gained.append(float(np.sign(reward)))
            going.append(float(not (ended or cut)))
        return torch.tensor(gained), torch.tensor(going)

    def reward(self, model, numbers: list[int]) -> float:
        """The mean reward of games that are played from their beginnings, by the likeliest actions."""
        total = 0.0
        for number in numbers:
            environment = self._environment()
            frames = self._begun(environment, 1_000_000 + number)
            state = tuple(torch.zeros(1, 1, _HIDDEN) for _ in range(2))
            for _ in range(self.longest):
                policy, _, state = model(torch.from_numpy(frames[None, None]).float() / 255, state)
                frame, reward, ended, cut, _ = environment.step(int(policy[0, 0].argmax()))
                frames, total = np.concatenate([frames[1:], frame[None]]), total + float(reward)
                if ended or cut:
                    break
        return total / len(numbers)

    def state_dict(self) -> dict:
        """The games as they stand, for a checkpoint."""
        buffer, kept = io.BytesIO(), {}
        for number, (environment, frames, remembered) in self._playing.items():
            kept[number] = environment.unwrapped.clone_state(include_rng=True), environment.lives, frames, remembered
        pickle.dump(kept, buffer)
        return {"games": torch.frombuffer(bytearray(buffer.getvalue()), dtype=torch.uint8)}

    def load_state_dict(self, state: dict) -> None:
        """Go on from `state_dict`, of a checkpoint of one's own: it is read by pickle."""
        self._playing = {}
        for number, (game, lives, frames, remembered) in pickle.loads(state["games"].numpy().tobytes()).items():
            environment = self._environment()
            environment.reset(seed=number)
            environment.unwrapped.restore_state(game)
            environment.lives = lives
            self._playing[number] = [environment, frames, remembered]
