"""A network and its loaders: new domain, 20 labels, monitored, saved, served."""

from digit_images import loaders, make_network, net, new, new_labels

import coolhead as ch

module = ch.torch.calibrate(net, loaders, source="mnist")

there = module.new_domain(new)  # another typeface, without labels
rows = there.rows_to_label(20)
there = there.with_labels(rows, new_labels[rows])
print(there.verdict(need=0.75))

watch = module.monitor()
watch.update(module.calibrator.details(*module.outputs_of(new)))
print(watch.check())

there.model.save("service")
served = ch.torch.CalibratedModule.load("service", make_network())
print(served(new[:2]).detach())
