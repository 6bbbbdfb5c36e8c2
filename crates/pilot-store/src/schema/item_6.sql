-- How many items of one creator have not ended is asked whenever a machine proposes another.
CREATE INDEX item_creator_open ON item (created_by, workflow) WHERE open = 1;
