// Reads cards, one on a line, with Microsoft's own library, and prints for each what it has to say against it.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

// Its other form is for bundlers, and not for Node.
const cards = createRequire(import.meta.url)("adaptivecards/dist/adaptivecards.js");

for await (const line of createInterface({ input: process.stdin })) {
  const context = new cards.SerializationContext(cards.Versions.v1_4);
  const card = new cards.AdaptiveCard();
  card.parse(JSON.parse(line), context);
  const said = [];
  for (let index = 0; index < context.eventCount; index++) said.push(context.getEventAt(index).message);
  for (const failure of card.validateProperties().validationEvents) said.push(failure.message);
  const read = card.toJSON();
  console.log(JSON.stringify({ said, actions: card.getActionCount(), inputs: card.getAllInputs().length, read }));
}
