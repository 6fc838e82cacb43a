"""Computes ONNX files by their definition: github.com/onnx/onnx, docs/Operators.md, as of opset 10. The distribution
has no program that runs transformers, so this computes their operators, in float64."""

import math

import numpy

erf = numpy.vectorize(math.erf, otypes=["f8"])


def reshaped(x, shape):
    """A 0 keeps the input's size; -1 is what is left."""
    return x.reshape([x.shape[i] if side == 0 else side for i, side in enumerate(int(side) for side in shape)])


def softmax(x, axis=1):
    """Before opset 13 the softmax is over all axes from `axis` on."""
    rows = x.reshape(math.prod(x.shape[:axis]), -1)
    shares = numpy.exp(rows - rows.max(1, keepdims=True))
    return (shares / shares.sum(1, keepdims=True)).reshape(x.shape)


def gather(x, indices, axis=0):
    assert indices.min() >= 0 and indices.max() < x.shape[axis], "indices are within the axis"
    return numpy.take(x, indices, axis)


def gemm(a, b, c, transB=0):
    return a @ (b.T if transB else b) + c


def flatten(x, axis=1):
    return x.reshape(math.prod(x.shape[:axis]), -1)


def conv(x, weight, bias=None, kernel_shape=(1, 1), strides=(1, 1), pads=(0, 0, 0, 0), group=1):
    """Supports 1 x 1 filters only."""
    assert (list(kernel_shape), list(strides), any(pads), group) == ([1, 1], [1, 1], False, 1)
    y = numpy.einsum("nchw,oc->nohw", x, weight[:, :, 0, 0])
    return y if bias is None else y + bias[:, None, None]


def batch_normalization(x, scale, bias, mean, variance, epsilon=1e-5):
    scale, bias, mean, variance = (each.reshape(-1, *[1] * (x.ndim - 2)) for each in (scale, bias, mean, variance))
    return (x - mean) / numpy.sqrt(variance + epsilon) * scale + bias


def instance_normalization(x, scale, bias, epsilon=1e-5):
    axes = tuple(range(2, x.ndim))
    mean, variance = x.mean(axes), x.var(axes)
    return batch_normalization(x.reshape(1, -1, *x.shape[2:]), numpy.tile(scale, len(x)), numpy.tile(bias, len(x)),
                               mean.ravel(), variance.ravel(), epsilon).reshape(x.shape)


OPERATORS = {
    "Add": numpy.add, "Sub": numpy.subtract, "Mul": numpy.multiply, "Div": numpy.divide, "Pow": numpy.power,
    "Sqrt": numpy.sqrt, "Erf": erf, "Tanh": numpy.tanh, "MatMul": numpy.matmul, "Identity": lambda x: x,
    "Relu": lambda x: numpy.maximum(x, 0),
    "ReduceMean": lambda x, axes, keepdims=1: x.mean(tuple(axes), keepdims=bool(keepdims)),
    "ReduceSum": lambda x, axes, keepdims=1: x.sum(tuple(axes), keepdims=bool(keepdims)),
    "Transpose": lambda x, perm: x.transpose(perm),
    "Concat": lambda *x, axis: numpy.concatenate(x, axis),
    "Gather": gather, "Reshape": reshaped, "Softmax": softmax, "Gemm": gemm, "Flatten": flatten, "Conv": conv,
    "BatchNormalization": batch_normalization, "InstanceNormalization": instance_normalization,
}


class Model:
    """A file that ONNX's checker has found well formed."""

    def __init__(self, onnx, path):
        self.onnx, self.document = onnx, onnx.load(str(path))
        onnx.checker.check_model(self.document, full_check=True)
        self.graph = self.document.graph
        self.constants = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in self.graph.initializer}

    def declared(self, value):
        tensor = value.type.tensor_type
        return tensor.elem_type, [side.dim_param or side.dim_value for side in tensor.shape.dim]

    @property
    def input(self):
        return self.declared(self.graph.input[0])

    @property
    def output(self):
        return self.declared(self.graph.output[0])

    def inferred_output(self):
        """Returns the output's shape, inferred from the shapes of the input and the weights."""
        bare = self.onnx.ModelProto()
        bare.CopyFrom(self.document)
        bare.graph.output[0].type.tensor_type.ClearField("shape")
        inferred = self.onnx.shape_inference.infer_shapes(bare, check_type=True, strict_mode=True, data_prop=True)
        return self.declared(inferred.graph.output[0])

    def scores(self, x):
        values = {name: each.astype("f8") if each.dtype == numpy.float32 else each for name, each in self.constants.items()}
        values[self.graph.input[0].name] = x
        for node in self.graph.node:
            attributes = {each.name: self.onnx.helper.get_attribute_value(each) for each in node.attribute}
            values[node.output[0]] = OPERATORS[node.op_type](*(values[name] for name in node.input), **attributes)
        return values[self.graph.output[0].name]
