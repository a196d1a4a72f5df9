/**
 * Program with the unmodified streaming client of the LangGraph SDK (v2): `node langgraph-v2-client.mjs <folder> <url>
 * <token> <script>`. Prints a line of JSON for each thing that the client has returned: { name, value }.
 */
import { createRequire } from "node:module";
import { join } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";

const [folder, url, token, script, subject] = process.argv.slice(2);
const installed = createRequire(join(folder, "package.json"));
const { Client } = await import(pathToFileURL(installed.resolve("@langchain/langgraph-sdk")).href);

const tell = (name, value) => console.log(JSON.stringify({ name, value: value ?? null }));
const human = (content, id) => ({ messages: [{ type: "human", content, id }] });
const client = new Client({ apiUrl: `${url}/langgraph`, apiKey: token });
const open = (thread, options = {}) => client.threads.stream(thread, { assistantId: "assistant", ...options });
const all = ["values", "updates", "messages", "tools", "lifecycle", "input", "checkpoints", "tasks", "custom"];
const listTexts = ({ messages }) => messages.map((message) => [message.getType(), message.text]);

async function refuse(act) {
  try {
    await act();
    return "not refused";
  } catch (error) {
    return error.code ?? String(error);
  }
}

/** Counts the frames of a subscription until its run rests. */
async function readRun(subscription) {
  const seen = { methods: {}, ids: [], lifecycle: [], namespaces: [] };
  for await (const { method, event_id: id, params } of subscription) {
    seen.methods[method] = (seen.methods[method] ?? 0) + 1;
    seen.ids.push(id);
    const namespace = params.namespace.join("/");
    if (!seen.namespaces.includes(namespace)) seen.namespaces.push(namespace);
    if (method === "lifecycle") seen.lifecycle.push([namespace, params.data.event]);
  }
  const { ids, ...rest } = seen;
  return { ...rest, hasUniqueIds: new Set(ids).size === ids.length };
}

/** Reads the text of each message to its end. */
async function readTexts(messages, onWord = () => {}) {
  const texts = [];
  for await (const message of messages) {
    let text = "";
    for await (const piece of message.text) {
      text += piece;
      await onWord(text);
    }
    texts.push([text, message.assembled.error?.code ?? null]);
  }
  return texts;
}

const scripts = {
  /** Subscribes before the first run of a thread that only the client knows. */
  events: async () => {
    const stream = open(crypto.randomUUID());
    const subscription = await stream.subscribe(all);
    tell("subscribed", true);
    const { run_id: run } = await stream.run.start({ input: human("look tea") });
    tell("run", typeof run);
    tell("seen", await readRun(subscription));
    tell("values", listTexts(await stream.output));
    const second = open(stream.threadId);
    const reading = await second.subscribe(all);
    const past = [];
    for await (const { method, params } of reading) {
      past.push(method);
      if (method === "lifecycle" && params.data.event === "completed") break;
    }
    tell(
      "past",
      past.filter((method) => method === "values" || method === "lifecycle"),
    );
    await second.close();
    await stream.run.start({ input: human("ask about ants") });
    tell("inner", await readRun(subscription));
    const { tree } = await stream.agent.getTree();
    tell("tree", [tree.status, tree.children.map(({ namespace, graph_name: graph }) => [namespace, graph])]);
    const { checkpoints } = await stream.state.listCheckpoints({ limit: 2 });
    tell(
      "checkpoints",
      checkpoints.map(({ step }) => step),
    );
    const { values } = await stream.state.get({ namespace: [], keys: ["messages"] });
    tell("state", values.messages.length);
    await stream.close();
  },
  texts: async () => {
    const stream = open(crypto.randomUUID());
    // A run may end before the client subscribes to what is asked for after the start.
    const { messages, toolCalls } = stream;
    await stream.run.start({ input: human("look tea") });
    tell("looked", await readTexts(messages));
    // The client yields a call at its start and at its end.
    const calls = new Map();
    for await (const { callId, name, args, output } of toolCalls) calls.set(callId, [name, args, await output]);
    tell("calls", [...calls.values()]);
    await stream.close();
    const failing = open(crypto.randomUUID());
    const subscription = await failing.subscribe(["messages", "lifecycle"]);
    await failing.run.start({ input: human("retract") });
    const shown = [];
    for await (const { method, params } of subscription)
      if (method === "messages" && params.data.event !== "content-block-start")
        shown.push(params.data.delta?.text ?? params.data.event);
    tell("retracted", shown.join("|"));
    tell("second", (await failing.output).messages.at(-1).text);
    await failing.run.start({ input: human("fail") });
    const ends = [];
    for await (const { method, params } of subscription) if (method === "lifecycle") ends.push(params.data);
    tell("failed", ends.at(-1));
    await failing.close();
  },
  answers: async () => {
    const stream = open(crypto.randomUUID());
    await stream.run.start({ input: human("pay 1 2") });
    await stream.output;
    tell("interrupted", [stream.interrupted, stream.interrupts.map(({ payload }) => payload)]);
    await stream.close();
    // Another page knows the interrupt from the past of the thread.
    const page = open(stream.threadId);
    const subscription = await page.subscribe(["lifecycle", "input", "values"]);
    for await (const { method } of subscription) if (method === "input.requested") break;
    const [{ interruptId: id }] = page.interrupts;
    const wrong = { namespace: [], interrupt_id: "no-such-id", response: { decisions: [{ type: "approve" }] } };
    tell("wrong", await refuse(() => page.input.respond(wrong)));
    const edited = { type: "edit", edited_action: { name: "pay", args: { amount: 7 } } };
    const decisions = [edited, { type: "reject", message: "too much" }];
    await page.input.respond({ namespace: [], interrupt_id: id, response: { decisions } });
    const rest = await page.subscribe(["lifecycle", "values"]);
    for await (const { method, params } of rest) if (method === "lifecycle" && params.data.event === "completed") break;
    const { values } = await page.state.get({ namespace: [] });
    tell(
      "answered",
      values.messages.slice(2).map(({ type, content, status }) => [type, content, status]),
    );
    tell("again", await refuse(() => page.input.respond({ namespace: [], interrupt_id: id, response: { decisions } })));
    tell("unknown", await refuse(() => page.state.fork({ checkpoint_id: "000000009999" })));
    await page.close();
  },
  /** A conversation of the tapes, with the frames of all channels. No other subscription moves them to a second stream. */
  tape: async () => {
    const graph = subject === "sub-agent" ? "boss" : "assistant";
    const stream = open("t1", { assistantId: graph });
    const subscription = await stream.subscribe(all);
    const frames = [];
    let status;
    const play = async (start, onText = () => {}) => {
      const started = await start();
      let text = "";
      for await (const { seq, event_id, method, params } of subscription) {
        const { namespace, node, data } = params;
        frames.push({ seq, event_id, method, namespace, node, data });
        if (method === "lifecycle" && namespace.length === 0) status = data.error ?? data.event;
        text += data?.delta?.text ?? "";
        await onText(text, started?.run_id);
      }
    };
    const once = (pattern, act) => {
      let isDone = false;
      return async (text, run) => {
        if (isDone || !pattern.test(text)) return;
        isDone = true;
        await act(run);
      };
    };
    const acts = {
      // A reply of the server to a later request: the request of the model is recorded by then.
      crash: once(/Half an /, async () => tell("kill", await stream.state.get({ namespace: [] }))),
      cancel: once(/Never /, (run) => client.runs.cancel("t1", run)),
    };
    const input = subject === "failure" ? { note: "n" } : human("Hello", "u1");
    await play(() => stream.submitRun({ input }), acts[subject]);
    if (subject === "waiting") {
      const { interrupt_id: id } = frames.find(({ method }) => method === "input.requested").data;
      const decisions = [{ type: "approve" }, { type: "reject", message: "too much" }];
      await play(() => stream.respondInput({ namespace: [], interrupt_id: id, response: { decisions } }));
    }
    if (subject === "fork") {
      const { checkpoints } = await stream.state.listCheckpoints({ limit: 2 });
      await play(() => stream.submitRun({ input: null, forkFrom: checkpoints[1].id }));
    }
    const { values } = await stream.state.get({ namespace: [] });
    const text = values.messages?.at(-1).content ?? values.note;
    tell("outcome", { text: text.at?.(-1).text ?? text, status, frames });
    await stream.close();
  },
  /** The server is killed in the middle of an answer, by the program that reads these lines. */
  kill: async () => {
    const stream = open(crypto.randomUUID());
    const subscription = await stream.subscribe(all);
    await stream.run.start({ input: human("long") });
    const reading = readRun(subscription);
    const texts = await readTexts(stream.messages, (text) => tell("word", text.split(" ").length - 1));
    tell("whole", { ...(await reading), texts, values: listTexts(await stream.output) });
    await stream.close();
  },
  /** Each request goes to the other of two processes; new subscriptions open new streams in the middle of an answer. */
  balance: async () => {
    let requests = 0;
    const balance = (input, init) => {
      requests += 1;
      return fetch(requests % 2 === 0 ? String(input).replace(url, subject) : input, init);
    };
    const stream = open(crypto.randomUUID(), { fetch: balance });
    const subscription = await stream.subscribe(["messages", "lifecycle", "values", "input"]);
    const { messages } = stream;
    await stream.run.start({ input: human("long") });
    const reading = readRun(subscription);
    const texts = readTexts(messages);
    for (const channel of ["tools", "custom", "tasks"]) {
      tell("say", 20);
      await stream.subscribe([channel]);
    }
    tell("whole", { ...(await reading), texts: await texts, requests, values: listTexts(await stream.output) });
    await stream.close();
  },
  /** The connection is cut every few words. */
  cuts: async () => {
    let cut = () => {};
    let cuts = 0;
    const stream = open(crypto.randomUUID(), {
      fetch: async (input, init) => {
        const response = await fetch(input, init);
        if (!String(input).endsWith("/stream/events") || response.body === null) return response;
        const leave = new AbortController();
        const { readable, writable } = new TransformStream();
        response.body.pipeTo(writable, { signal: leave.signal }).catch(() => {});
        cut = () => leave.abort();
        return new Response(readable, { status: response.status, headers: response.headers });
      },
    });
    await stream.run.start({ input: human("long") });
    const texts = await readTexts(stream.messages, async (text) => {
      const count = text.split(" ").length - 1;
      tell("word", count);
      if (count % 15 !== 0 || count === 60) return;
      cuts += 1;
      cut();
    });
    tell("whole", { texts, cuts, values: listTexts(await stream.output) });
    await stream.close();
  },
};

await scripts[script]();
process.exit(0);
