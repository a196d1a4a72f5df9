/**
 * One process whose agent runs a shell command. The process dies during the command; the next process continues and
 * prints the state of the run.
 */
import process from "node:process";
import { call, crashPoint, say, scriptedModel } from "@statewright/testing";
import { bash } from "@statewright/tools";
import { createAgent, sqliteStore } from "statewright";

const [, , seconds = "600"] = process.argv;
const store = sqliteStore("commands.db", { durability: "normal" });
const agent = createAgent({
  name: "operator",
  model: scriptedModel([
    call("bash", { command: `echo begun; (sleep ${seconds}; echo late > late.txt); echo late > late.txt` }),
    say("Done"),
  ]),
  tools: [bash({ root: process.cwd() })],
  store,
});

const handle = agent.run({
  thread: "commands",
  key: "one",
  input: [{ role: "user", id: "u1", content: [{ type: "text", text: "go" }] }],
});
handle.on((event) => {
  if (event.type === "tool.update") crashPoint("command at work");
});
const result = await handle.result;
const questions = "interrupts" in result ? result.interrupts.map(({ key }) => key) : [];
process.stdout.write(JSON.stringify({ status: result.status, questions }));
await store.close();
