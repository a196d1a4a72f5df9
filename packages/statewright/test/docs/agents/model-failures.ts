import { failWith, say, scriptedModel, stall } from "@statewright/testing";
import {
  channel,
  createAgent,
  defineGraph,
  defineState,
  END,
  getMessageText,
  type Message,
  type ModelFailure,
  type RunEvent,
  run,
  START,
  StatewrightError,
} from "statewright";
import { modelFallback, modelRetry, modelTimeouts } from "statewright/middleware";

const failed = (details: ModelFailure) =>
  new StatewrightError("model_failed", { what: "the provider refused", next: "Wait", details });
const limited = failWith(failed({ retryable: true, status: 429, retryAfterMs: 30 }));
const cut = failWith(failed({ retryable: true, kind: "broken_reply" }), { after: say("It is rai") });
const locked = failWith(failed({ retryable: false, status: 401 }));

function tell(event: RunEvent): void {
  if (event.type === "model.retried") {
    const { model, kind, next, delayMs } = event;
    console.log(`${model} failed: ${kind}; ${next} is asked ${delayMs === 0 ? "at once" : `in ${delayMs} ms`}`);
  }
  if (event.type === "message.retracted") console.log(`void: ${event.text}`);
  if (event.type === "message.completed") {
    const { answeredBy = "big", failedAttempts = [] } = event.message;
    console.log(
      `${getMessageText(event.message)} By ${answeredBy}; lost: ${failedAttempts.map(({ kind }) => kind).join(", ")}`,
    );
  }
}

// retries
const patient = createAgent({
  name: "patient",
  model: scriptedModel([limited, say("It rains.")], { id: "big" }),
  retry: { attempts: 4, initialMs: 10, jitter: 0, maxRetryAfterMs: 120_000 },
});
const first = patient.run({ input: "Oslo?" });
first.on(tell);
await first.result;

// timeouts
const quick = createAgent({
  name: "quick",
  model: scriptedModel([stall({ after: say("I thi") }), say("It rains.")], { id: "big" }),
  timeouts: { firstTokenMs: 20_000, idleMs: 40, totalMs: 120_000 },
  retry: { attempts: 2, initialMs: 0 },
});
const second = quick.run({ input: "Oslo?" });
second.on(tell);
await second.result;

// fallback
const small = scriptedModel(() => say("It rains."), { id: "small" });
const safe = createAgent({
  name: "safe",
  model: scriptedModel([locked], { id: "big" }),
  fallback: { models: [small], on: ["rate_limit", "overloaded", "server_error", "auth"] },
});
const third = safe.run({ input: "Oslo?" });
third.on(tell);
await third.result;

// the whole graph
const house = defineGraph({
  name: "house",
  state: defineState({ messages: channel.messages() }),
  middleware: [
    modelRetry({ attempts: 2, initialMs: 0, on: ["broken_reply", "timeout"] }),
    modelFallback([small]),
    modelTimeouts({ firstTokenMs: 20_000, idleMs: 10_000 }),
  ],
})
  .nodes({
    ask: async (state, { model }) => ({
      messages: [
        await model({
          model: scriptedModel([cut, cut, say("Too late.")], { id: "big" }),
          request: { messages: state.messages, tools: [] },
          retry: { attempts: 9 },
        }),
      ],
    }),
  })
  .edges({ [START]: "ask", ask: END });
const words: Message = { role: "user", id: "u1", content: [{ type: "text", text: "Oslo?" }] };
const fourth = run(house, { input: { messages: [words] } });
fourth.on(tell);
await fourth.result;
