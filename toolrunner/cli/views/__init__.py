"""Views of a journal: pure folds from records to what people see. Nothing here prints or waits; `trees` alone looks around.

`steps` = one record in words (`conversation`: one of a conversation), `story` = the records of one call as one story, `timeline`
and `marks` = its stretches of time to scale, `listing` = `log`, `story_text` = `show`, `page` = `log --html` (in `markup`),
`styles` = how outcomes look, `trees` = the processes of `ps`.
"""
