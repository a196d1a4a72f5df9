/** The typed client against a server in this process. */
import { expect, test } from "vitest";
import { ClientError } from "../src/index.ts";
import { ask, startTestServer, words } from "./support/test-server.ts";

/** Cuts the body of a response after a number of bytes. */
function cutAfter(response: Response, bytes: number): Response {
  const reader = response.body?.getReader();
  let left = bytes;
  const body = new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      const { done, value } = (await reader?.read()) ?? { done: true, value: undefined };
      if (done || value === undefined) return controller.close();
      controller.enqueue(value.slice(0, left));
      left -= value.byteLength;
      if (left <= 0) {
        await reader?.cancel();
        controller.error(new TypeError("terminated"));
      }
    },
    cancel: (reason) => reader?.cancel(reason),
  });
  return new Response(body, { status: response.status, headers: response.headers });
}

test("a client starts a run, streams its words, and reads the state that its types describe [V25]", async () => {
  const { client } = await startTestServer();
  const thread = client.thread("t1");
  let text = "";
  const types: string[] = [];
  const input = { messages: [{ role: "user" as const, content: "Hello" }] };
  for await (const event of thread.stream("assistant", { input })) {
    types.push(event.type);
    // The model of the test answers at once: its words arrive with the finished message.
    if (event.type === "message.completed") text = JSON.stringify(event["message"]);
  }
  expect([types[0], types.at(-1)]).toEqual(["run.started", "run.completed"]);
  expect(text).toContain(words.join(" "));
  const { values, status } = await thread.state();
  expect([status, JSON.stringify(values)]).toEqual(["done", expect.stringContaining("word60")]);
  expect((await client.listThreads({ metadata: {} })).data.map(({ id }) => id)).toEqual(["t1"]);
  expect((await client.listGraphs()).map(({ name }) => name)).toEqual(["assistant"]);
});

test("a client answers an interrupt by its id, and waits until the run rests [V25]", async () => {
  const { client } = await startTestServer();
  const thread = client.thread("t1");
  const asked = await thread.runToRest("assistant", { input: ask("transfer", "m1") });
  expect(asked.run.status).toBe("waiting");
  const [interrupt] = (await client.listInterrupts()).data;
  expect([interrupt?.thread, interrupt?.key]).toEqual(["t1", "approve"]);
  const run = await thread.answer<"assistant">({ answers: { [interrupt?.id ?? ""]: { approved: true } } });
  const { run: done, state } = await thread.wait(run.id);
  expect(done.status).toBe("done");
  expect(JSON.stringify(state?.values)).toContain("Result: Sent 5");
});

test("a client whose connection breaks again and again receives each durable event once, in order [V25]", async () => {
  let cut = 700;
  const { client, delays } = await startTestServer(async (request, next) => {
    const response = await next(request.url, request);
    const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") ?? false;
    cut += 300;
    return isStream ? cutAfter(response, cut) : response;
  });
  const thread = client.thread("t1");
  await thread.runToRest("assistant", { input: ask("Hello", "m1") });
  await thread.runToRest("assistant", { input: ask("Again", "m2") });
  const seqs: number[] = [];
  for await (const event of thread.events({ end: "idle" }))
    if (/^(?:run\.|step\.)/.test(event.type)) seqs.push(event.seq);
  expect(seqs).toEqual(seqs.map((_, index) => index + 1));
  expect(seqs.length).toBeGreaterThan(5);
  expect(delays.length).toBeGreaterThan(0);
});

test("a client repeats a read and a call with a key after a lost connection, and never a call without a key [V25]", async () => {
  let failures = 2;
  const { client, requests, delays } = await startTestServer(async (request, next) => {
    if (failures-- > 0) throw new TypeError("fetch failed");
    return await next(request.url, request);
  });
  expect(await client.listGraphs()).toHaveLength(1);
  expect(delays).toEqual([1_000, 2_000]);
  failures = 1;
  const input = ask("Hello", "m1");
  expect((await client.thread("t1").run("assistant", { input, key: "k1" })).thread).toBe("t1");
  failures = 1;
  const before = requests.length;
  await expect(client.thread("t2").run("assistant", { input })).rejects.toMatchObject({
    code: "connection_failed",
    message: expect.stringMatching(/^client: expected a response from http:\/\/.*\/api, got none\. Check the URL/),
  });
  expect(requests.length).toBe(before + 1);
});

test("a client waits as long as the server asks for before it repeats a request [V25]", async () => {
  let isFirst = true;
  const { client, delays } = await startTestServer(async (request, next) => {
    if (!isFirst) return await next(request.url, request);
    isFirst = false;
    return new Response(null, { status: 503, headers: { "retry-after": "7" } });
  });
  await client.listThreads();
  expect(delays).toEqual([7_000]);
});

test("an error of the client has the code, the status and the page of the problem [V26]", async () => {
  const { client } = await startTestServer();
  const error = await client
    .thread("nobody")
    .get()
    .catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(ClientError);
  expect(error).toMatchObject({ code: "unknown_thread", status: 404, docs: "errors.md#unknown_thread" });
  const refused = await client
    .thread("t1")
    .run("assistant", { input: ask("Hello", "m1"), onBusy: "never" as never })
    .catch((reason: unknown) => reason);
  expect(refused).toMatchObject({ status: 422, errors: [{ pointer: "/onBusy", detail: expect.any(String) }] });
});

test("an abort ends a stream of events without an error [V25]", async () => {
  const { client } = await startTestServer();
  const thread = client.thread("t1");
  await thread.runToRest("assistant", { input: ask("Hello", "m1") });
  const left = new AbortController();
  const seen: string[] = [];
  for await (const event of thread.events({ signal: left.signal })) {
    seen.push(event.type);
    if (event.type === "run.completed") left.abort();
  }
  expect(seen).toContain("run.completed");
});

test("the compiler refuses a missing input, an input of another graph and an unknown option of the client [V25]", async () => {
  const { client } = await startTestServer();
  const check = async (): Promise<void> => {
    // @ts-expect-error The input has no such channel.
    await client.thread("t1").run("assistant", { input: { message: "Hello" } });
    // @ts-expect-error The client has no such option.
    await client.thread("t1").run("assistant", { input: ask("Hello", "m1"), onBussy: "reject" });
  };
  expect(check).toBeTypeOf("function");
});
