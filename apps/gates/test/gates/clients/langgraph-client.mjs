/**
 * Program with the unmodified LangGraph SDK. Runs one scenario, and prints a line of JSON for each thing that the SDK
 * has returned: { name, value }.
 */
import { createRequire } from "node:module";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [folder, url, token, scenario, subject] = process.argv.slice(2);
const installed = createRequire(join(folder, "package.json"));
const { Client } = await import(pathToFileURL(installed.resolve("@langchain/langgraph-sdk")).href);
const client = new Client({ apiUrl: `${url}/langgraph`, apiKey: token });
const assistant = "assistant";

const tell = (name, value) => console.log(JSON.stringify({ name, value: value ?? null }));
const human = (content, id) => ({ messages: [{ type: "human", content, ...(id === undefined ? {} : { id }) }] });
const listTexts = ({ messages }) =>
  messages.map(({ type, content, status }) => [type, content, ...(status ? [status] : [])]);

/** Reads a stream to its end: events in order, and the text of each streamed message. */
async function read(stream, onEvent = () => {}) {
  const events = [];
  const texts = {};
  const ids = [];
  let values;
  for await (const { id, event, data } of stream) {
    if (events.at(-1) !== event) events.push(event);
    if (id !== undefined) ids.push(id);
    if (event === "values") values = data;
    if (event === "messages")
      texts[data[0].id] = (texts[data[0].id] ?? "") + (typeof data[0].content === "string" ? data[0].content : "");
    if (event === "end") events.push(data?.status ?? "end");
    if (event === "error") events.push(data);
    onEvent(event, data, id);
  }
  return { events, texts, hasUniqueIds: new Set(ids).size === ids.length, values };
}

async function refusal(promise) {
  const begun = Date.now();
  return promise.then(
    () => "accepted",
    (error) => ({
      status: error.status ?? Number(/HTTP (\d+)/.exec(String(error))?.[1]),
      isSlow: Date.now() - begun > 4_000,
    }),
  );
}

const scenarios = {
  /** Each call of the client that the clients of LangGraph use. */
  calls: async () => {
    tell(
      "assistants",
      (await client.assistants.search({ graphId: assistant })).map(({ graph_id }) => graph_id),
    );
    const [{ assistant_id }] = await client.assistants.search();
    tell("assistant", (await client.assistants.get(assistant_id)).name);
    tell(
      "schemas",
      Object.entries(await client.assistants.getSchemas(assistant))
        .filter(([key]) => key.endsWith("_schema"))
        .map(([key, schema]) => [key, typeof schema.properties]),
    );
    tell(
      "graph",
      (await client.assistants.getGraph(assistant)).nodes.map(({ id }) => id),
    );
    const { thread_id } = await client.threads.create({ metadata: { topic: "a" } });
    tell("created", (await client.threads.get(thread_id)).status);
    let run;
    const streamed = await read(
      client.runs.stream(thread_id, assistant_id, {
        input: human("look tea"),
        streamMode: ["values", "updates", "messages-tuple", "tools", "custom"],
        metadata: { source: "gate" },
        onRunCreated: (created) => {
          run = created;
        },
      }),
    );
    tell("streamed", { ...streamed, values: listTexts(streamed.values) });
    tell("run", [
      (await client.runs.get(thread_id, run.run_id)).status,
      (await client.runs.get(thread_id, run.run_id)).metadata.source,
    ]);
    tell("joined", listTexts(await client.runs.join(thread_id, run.run_id)));
    const joined = await read(
      client.runs.joinStream(thread_id, run.run_id, { lastEventId: "-1", streamMode: ["values"] }),
    );
    tell("joinStream", { events: joined.events, values: listTexts(joined.values) });
    tell("waited", listTexts(await client.runs.wait(thread_id, assistant, { input: human("hello") })));
    tell(
      "runs",
      (await client.runs.list(thread_id)).map(({ status }) => status),
    );
    tell(
      "searched",
      (await client.threads.search({ metadata: { topic: "a" } })).map(({ values }) => values.messages.length),
    );
    tell("byGraph", (await client.threads.search({ metadata: { graph_id: assistant } })).length);
    await client.threads.update(thread_id, { metadata: { topic: "b" } });
    tell("updated", (await client.threads.get(thread_id)).metadata.topic);
    const copy = await client.threads.copy(thread_id);
    tell("copied", (await client.threads.getState(copy.thread_id)).values.messages.length);
    await client.threads.delete(copy.thread_id);
    tell("deleted", await refusal(client.threads.get(copy.thread_id)));
    const created = await client.runs.create(thread_id, assistant, { input: human("long") });
    await client.runs.cancel(thread_id, created.run_id, true);
    tell("cancelled", (await client.runs.get(thread_id, created.run_id)).status);
    tell("failed", (await read(client.runs.stream(thread_id, assistant, { input: human("fail") }))).events);
    const retracted = await read(
      client.runs.stream(thread_id, assistant, { input: human("retract"), streamMode: ["values", "messages-tuple"] }),
    );
    tell("retracted", [Object.values(retracted.texts), retracted.values.messages.at(-1).content]);
    tell(
      "stateless",
      listTexts(await client.runs.wait(null, assistant, { input: human("alone"), onCompletion: "keep" })),
    );
    tell("refused", [
      await refusal(client.assistants.create({ graphId: assistant })),
      await refusal(client.runs.wait(thread_id, assistant, { input: human("x"), webhook: "http://127.0.0.1/x" })),
      await refusal(client.store.getItem(["a"], "k")),
      await refusal(client.crons.create(assistant, { schedule: "* * * * *" })),
      await refusal(client.runs.wait(null, assistant, { input: human("x") })),
    ]);
  },
  /** Interrupts, answers, forks and edits. */
  forks: async () => {
    const { thread_id } = await client.threads.create();
    const asked = await client.runs.wait(thread_id, assistant, { input: human("pay 1 2") });
    tell("interrupt", asked.__interrupt__);
    tell("waiting", [
      (await client.threads.get(thread_id)).status,
      (await client.threads.getState(thread_id)).tasks.map(({ interrupts }) => interrupts.length),
    ]);
    const decisions = [
      { type: "edit", edited_action: { name: "pay", args: { amount: 7 } } },
      { type: "reject", message: "too much" },
    ];
    const resumed = await read(
      client.runs.stream(thread_id, assistant, {
        command: { resume: { decisions } },
        streamMode: ["values", "messages-tuple"],
      }),
    );
    tell("resumed", listTexts(resumed.values));
    tell("again", await refusal(client.runs.wait(thread_id, assistant, { command: { resume: { decisions } } })));
    const history = await client.threads.getHistory(thread_id, { limit: 50 });
    tell(
      "history",
      history.map(({ checkpoint, parent_checkpoint, metadata, next }) => [
        checkpoint.checkpoint_id,
        parent_checkpoint?.checkpoint_id ?? null,
        metadata.source,
        next,
      ]),
    );
    const first = history.find(({ values }) => values.messages?.length === 1);
    const forked = await client.threads.updateState(thread_id, {
      values: null,
      checkpoint: first.checkpoint,
      asNode: "__copy__",
    });
    tell("forked", typeof forked.checkpoint.checkpoint_id);
    tell("forkedState", listTexts((await client.threads.getState(thread_id)).values));
    const edited = await client.runs.wait(thread_id, assistant, {
      input: human("hello again"),
      checkpoint: first.parent_checkpoint,
    });
    tell("edited", listTexts(edited));
    await client.threads.updateState(thread_id, {
      values: { messages: [{ type: "remove", id: edited.messages.at(-1).id }] },
    });
    tell("removed", listTexts((await client.threads.getState(thread_id)).values));
    const color = await client.threads.create();
    const tool = await client.runs.wait(color.thread_id, assistant, { input: human("color") });
    tell(
      "clientTool",
      tool.__interrupt__.map(({ value }) => [value.type, value.toolCall.name]),
    );
    const picked = await client.runs.wait(color.thread_id, assistant, {
      command: { resume: { [tool.__interrupt__[0].value.toolCall.id]: { color: "red" } } },
    });
    tell("picked", picked.messages.at(-2).content);
  },
  /** The requests that Agent Chat UI makes, as it makes them. */
  chatUi: async () => {
    const info = await fetch(`${url}/langgraph/info`, {
      headers: { "x-api-key": token, "x-auth-scheme": "langsmith" },
    });
    tell("info", info.status);
    const metadata = { graph_id: assistant };
    tell("none", (await client.threads.search({ metadata, limit: 100 })).length);
    const { thread_id } = await client.threads.create({ metadata });
    const settings = { streamMode: ["values"], streamSubgraphs: true, streamResumable: true };
    const submit = (payload) => read(client.runs.stream(thread_id, assistant, { ...settings, ...payload }));
    const first = await submit({ input: { ...human("pay 3", "a8e5c1f0-0000-4000-8000-000000000001"), context: {} } });
    tell(
      "asked",
      first.values.__interrupt__.map(({ value }) => value.action_requests[0].name),
    );
    const resumed = await submit({ command: { resume: { decisions: [{ type: "approve" }] } } });
    tell("approved", listTexts(resumed.values).slice(-2));
    const hidden = {
      type: "tool",
      id: "do-not-render-1",
      tool_call_id: "call_1",
      name: "pay",
      content: "Successfully handled tool call.",
    };
    const next = {
      messages: [
        hidden,
        { type: "human", id: "a8e5c1f0-0000-4000-8000-000000000002", content: [{ type: "text", text: "hello" }] },
      ],
    };
    const second = await submit({ input: next });
    tell("second", listTexts(second.values).slice(-2));
    const states = await client.threads.getHistory(thread_id, { limit: 100 });
    const answer = second.values.messages.at(-1);
    const firstSeen = states.findLast(({ values }) => values.messages?.some(({ id }) => id === answer.id));
    const again = await submit({ input: null, checkpoint: firstSeen.parent_checkpoint });
    tell("regenerated", [
      again.values.messages.length === second.values.messages.length,
      again.values.messages.at(-1).id !== answer.id,
    ]);
    const shown = (await client.threads.search({ metadata, limit: 100 })).filter(({ values }) =>
      Array.isArray(values?.messages),
    );
    tell(
      "listed",
      shown.map(({ thread_id: id }) => id === thread_id),
    );
  },
  /** A conversation of the tapes, with every event that a stream can have. */
  tape: async () => {
    const graph = subject === "sub-agent" ? "boss" : "assistant";
    const { thread_id } = await client.threads.create({ threadId: "t1" });
    const streamMode = [
      "values",
      "updates",
      "messages",
      "messages-tuple",
      "custom",
      "tasks",
      "checkpoints",
      "debug",
      "tools",
    ];
    const frames = [];
    let status;
    let words = "";
    const play = async (payload, onWord = () => {}) => {
      let run;
      const settings = { streamMode, streamSubgraphs: true, onRunCreated: (created) => (run = created.run_id) };
      for await (const { event, data } of client.runs.stream(thread_id, graph, { ...settings, ...payload })) {
        frames.push({ event, data });
        if (event === "end") status = data.status;
        if (event === "error") status = data.error;
        if (event !== "messages" || typeof data[0].content !== "string") continue;
        words += data[0].content;
        await onWord(run);
      }
    };
    const once = (work) => {
      let isDone = false;
      return async (run) => {
        if (isDone || !/Half an answer|Never to/.test(words)) return;
        isDone = true;
        await work(run);
      };
    };
    const input = subject === "failure" ? { note: "n" } : human("Hello", "u1");
    const interrupt = { crash: once(() => tell("kill")), cancel: once((run) => client.runs.cancel(thread_id, run)) };
    await play({ input }, interrupt[subject]);
    if (subject === "waiting")
      await play({
        command: { resume: { decisions: [{ type: "approve" }, { type: "reject", message: "too much" }] } },
      });
    if (subject === "fork") {
      const [newest] = await client.threads.getHistory(thread_id, { limit: 1 });
      await play({ input: null, checkpoint: newest.parent_checkpoint });
    }
    const { values } = await client.threads.getState(thread_id);
    tell("outcome", {
      text: values.messages?.at(-1).content.at?.(-1).text ?? values.messages?.at(-1).content ?? values.note,
      status,
      frames,
    });
  },
  /** An answer during which the server dies. Prints each word that has arrived. */
  kill: async () => {
    const { thread_id } = await client.threads.create();
    tell("thread", thread_id);
    let text = "";
    const whole = await read(
      client.runs.stream(thread_id, assistant, {
        input: human("long"),
        streamMode: ["values", "messages-tuple"],
        streamResumable: true,
      }),
      (event, data) => {
        if (event !== "messages" || data[0].content === "") return;
        text += data[0].content;
        tell("word", text.trim().split(" ").length);
      },
    );
    tell("whole", { ...whole, values: listTexts(whole.values) });
  },
  /** A client whose connection is cut again and again reads each word once. */
  cuts: async () => {
    const { thread_id } = await client.threads.create();
    const run = await client.runs.create(thread_id, assistant, {
      input: human("long"),
      streamMode: ["values", "messages-tuple"],
    });
    const texts = {};
    let lastEventId = "-1";
    let cuts = 0;
    for (let isOver = false; !isOver; ) {
      const leave = new AbortController();
      let left = 5;
      try {
        for await (const { id, event, data } of client.runs.joinStream(thread_id, run.run_id, {
          lastEventId,
          signal: leave.signal,
        })) {
          lastEventId = id ?? lastEventId;
          if (event === "messages" && data[0].content !== "") {
            texts[data[0].id] = (texts[data[0].id] ?? "") + data[0].content;
            tell("word", texts[data[0].id].trim().split(" ").length);
            left -= 1;
          }
          if (event === "end") isOver = true;
          if (left === 0) break;
        }
      } catch (error) {
        if (error.name !== "AbortError") throw error;
      }
      leave.abort();
      cuts += 1;
    }
    tell("whole", { texts, cuts, lastEventId });
  },
};

createInterface({ input: process.stdin }).resume();
await scenarios[scenario]();
process.exit(0);
