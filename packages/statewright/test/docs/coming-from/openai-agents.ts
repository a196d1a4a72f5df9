import { call, say, scriptedModel } from "@statewright/testing";
import { agentTool, createAgent, defineContext, defineTool, handoff, memoryStore, team } from "statewright";
import { confirmTools, inputGuardrail } from "statewright/middleware";
import * as z from "zod";

const store = memoryStore();

const User = defineContext({ name: z.string() });
const greet = defineTool({
  name: "greet",
  description: "A greeting for the user.",
  input: z.object({ language: z.enum(["en", "no"]) }),
  inject: { user: User.from(({ name }) => name) },
  effect: "pure",
  run: ({ language }, { injected }) => `${language === "no" ? "Hei" : "Hello"}, ${injected.user}!`,
});
const assistant = createAgent({
  name: "assistant",
  model: scriptedModel([call(greet, { language: "no" }), say("Hei, Ada!")]),
  instructions: (_state, { name }) => `You talk with ${name}.`,
  context: User,
  tools: [greet],
  maxTurns: 10,
});
const result = await assistant.run({ input: "Say hello.", context: { name: "Ada" } }).result;
console.log(result.text);

const billing = createAgent({ name: "billing", model: scriptedModel([say("Your bill is 40 euros.")]) });
const triage = createAgent({
  name: "triage",
  model: scriptedModel([call("transfer_to_billing", {})]),
  tools: [handoff(billing)],
});
const desk = team({ name: "desk", agents: [triage, billing], store });
const talk = await desk.run({ thread: "t1", input: "How much do I owe?" }).result;
console.log(talk.text, talk.state?.activeAgent);

const translator = createAgent({ name: "translator", model: scriptedModel([say("Hei")]) });
const lead = createAgent({
  name: "lead",
  model: scriptedModel([call("translate", { task: "Hello in Norwegian" }), say("It is Hei.")]),
  tools: [agentTool(translator, { name: "translate", description: "Translate a text." })],
});
console.log((await lead.run({ input: "Translate Hello." }).result).text);

const guarded = createAgent({
  name: "guarded",
  model: scriptedModel([say("Sure.")]),
  middleware: [
    inputGuardrail({ check: ({ text }) => (/homework/.test(text) ? { refuse: "I do no homework." } : undefined) }),
  ],
});
const refused = await guarded.run({ input: "Do my homework." }).result;
console.log(refused.text, refused.ended?.by);

const remove = defineTool({
  name: "remove_file",
  description: "Remove a file.",
  input: z.object({ path: z.string() }),
  safety: { access: "destructive", confirm: "always" },
  run: ({ path }) => `Removed ${path}.`,
});
const cleaner = createAgent({
  name: "cleaner",
  model: scriptedModel([call(remove, { path: "a.txt" }), say("It is gone.")]),
  tools: [remove],
  middleware: [confirmTools()],
  store,
});
const waiting = await cleaner.run({ thread: "t2", input: "Remove a.txt." }).result;
console.log(waiting.status);
console.log((await cleaner.resume({ thread: "t2", answers: { approve: true } }).result).text);
