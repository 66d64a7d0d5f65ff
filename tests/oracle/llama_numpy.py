# SPDX-License-Identifier: Apache-2.0
"""A Llama 2 model in the layout of llama2.c's first version, computed in float64 by numpy: what examples/llama is held to.

The file: seven int32 (dim, hidden, layers, heads, kv heads, vocabulary, longest sequence; a negative vocabulary says that the
classifier follows at the end instead of being the token embedding), then f32 arrays in the order of Model.__init__.
"""
import numpy


class Model:
    def __init__(self, path):
        raw = open(path, "rb").read()
        header = numpy.frombuffer(raw, "<i4", 7)
        self.dim, self.hidden, self.layers, self.heads, self.kv_heads, vocabulary, self.longest = (int(x) for x in header)
        self.vocabulary = abs(vocabulary)
        self.head = self.dim // self.heads
        kv_dim = self.head * self.kv_heads
        self.at = 28

        def take(*shape):
            count = int(numpy.prod(shape))
            values = numpy.frombuffer(raw, "<f4", count, self.at).astype(numpy.float64).reshape(shape)
            self.at += 4 * count
            return values

        layers, dim, hidden = self.layers, self.dim, self.hidden
        self.embedding = take(self.vocabulary, dim)
        self.norm_attention = take(layers, dim)
        self.wq, self.wk, self.wv = take(layers, dim, dim), take(layers, kv_dim, dim), take(layers, kv_dim, dim)
        self.wo = take(layers, dim, dim)
        self.norm_ffn = take(layers, dim)
        self.w1, self.w2, self.w3 = take(layers, hidden, dim), take(layers, dim, hidden), take(layers, hidden, dim)
        self.norm_final = take(dim)
        take(self.longest, self.head)        # tables of sines and cosines, computed here instead
        self.classifier = self.embedding if vocabulary > 0 else take(self.vocabulary, dim)
        self.keys, self.values = [[] for _ in range(layers)], [[] for _ in range(layers)]

    @staticmethod
    def normalize(x, scale):
        return x / numpy.sqrt(numpy.mean(x * x) + 1e-5) * scale

    def rotate(self, x, position):
        """Neighbours are the two parts of a complex number, turned by position / 10000 ** (2 i / head)."""
        angle = position * 10000.0 ** (-numpy.arange(0, self.head, 2) / self.head)
        pairs = x.reshape(-1, self.head // 2, 2)
        turned = (pairs[..., 0] + 1j * pairs[..., 1]) * numpy.exp(1j * angle)
        return numpy.stack([turned.real, turned.imag], -1).reshape(-1, self.head)

    def attend(self, layer, query):
        keys, values = numpy.array(self.keys[layer]), numpy.array(self.values[layer])
        shared = self.heads // self.kv_heads
        out = []
        for head in range(self.heads):
            scores = keys[:, head // shared] @ query[head] / numpy.sqrt(self.head)
            weights = numpy.exp(scores - scores.max())
            out.append(weights @ values[:, head // shared] / weights.sum())
        return numpy.concatenate(out)

    def step(self, token):
        """Takes the next token and gives the logits of the one that follows."""
        x = self.embedding[token].copy()
        position = len(self.keys[0])
        for layer in range(self.layers):
            normal = self.normalize(x, self.norm_attention[layer])
            query = self.rotate(self.wq[layer] @ normal, position)
            self.keys[layer].append(self.rotate(self.wk[layer] @ normal, position))
            self.values[layer].append((self.wv[layer] @ normal).reshape(self.kv_heads, self.head))
            x = x + self.wo[layer] @ self.attend(layer, query)
            normal = self.normalize(x, self.norm_ffn[layer])
            gate = self.w1[layer] @ normal
            x = x + self.w2[layer] @ (gate / (1 + numpy.exp(-gate)) * (self.w3[layer] @ normal))
        return self.classifier @ self.normalize(x, self.norm_final)
