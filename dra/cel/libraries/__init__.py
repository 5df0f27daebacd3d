"""The functions of CEL, a module a library; each exports `FUNCTIONS`. None knows the checker or the evaluator."""
