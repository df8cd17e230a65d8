"""Views of a journal: pure folds from records to what people see. Nothing here opens, prints or waits.

`steps` = one record in words, `story` = the records of one call as one story, `timeline` = its stretches of time to scale,
`listing` = `log`, `story_text` = `show`, `page` = `log --html`.
"""
