"""One rule = one small file, named after its code and its name; `headrace.doctor.catalogue` finds them."""
