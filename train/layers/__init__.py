"""Operations of networks with their gradients, and the layers that are made of them."""
