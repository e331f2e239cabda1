# Files only: predictions of any classifier as probabilities, without features.
coolhead fit known.csv --out model.skops
coolhead expect model.skops new.csv --need 0.75
coolhead label model.skops new.csv --rows 20 --out todo.csv
# Fill the column `label` of todo.csv.
coolhead update model.skops todo.csv --on new.csv --out better.skops
coolhead apply better.skops new.csv --out served.csv
coolhead drift model.skops new.csv --state state.json
