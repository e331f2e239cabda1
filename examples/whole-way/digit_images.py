"""A network that reads digits of one kind, and loaders of three kinds and a new one."""

import torch
from torch.utils.data import DataLoader, TensorDataset

import coolhead as ch

torch.manual_seed(0)
digits = ch.load_dataset("digits")


def make_network():
    """The architecture, not trained."""
    layers = torch.nn.Linear(256, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10)
    return torch.nn.Sequential(*layers)


def loader(kind, start, step):
    """Batches of images and labels."""
    rows = digits.select(kind).rows(slice(start, None, step))
    tensors = torch.tensor(rows.features), torch.tensor(rows.labels)
    return DataLoader(TensorDataset(*tensors), batch_size=100)


net = make_network()
adam = torch.optim.Adam(net.parameters(), lr=3e-3)
for _ in range(5):
    for images, labels in loader("mnist", 0, 2):
        adam.zero_grad()
        torch.nn.functional.cross_entropy(net(images), labels).backward()
        adam.step()

loaders = {
    "mnist": loader("mnist", 1, 8),
    "sans": loader("sans", 0, 8),
    "uci": loader("uci", 0, 3),
}
new = torch.tensor(digits.select("serif").features[::4])
new_labels = digits.select("serif").labels[::4]
