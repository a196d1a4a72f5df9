/** The streaming clients (v2) of LangGraph against a server in another process, over TCP, on a SQLite file. */
import { expect, test } from "vitest";
import * as z from "zod";
import { installClients } from "../../../src/clients/install-clients.ts";
import { runClient, startServer, startServers, token, words } from "./langgraph-processes.ts";

const core = { "@langchain/core": "1.3.2" };

function installStream(): Promise<string> {
  return installClients({ name: "langgraph-v2", dependencies: { "@langchain/langgraph-sdk": "1.15.0", ...core } });
}

function installPage(): Promise<string> {
  const react = { react: "19.3.1", "react-dom": "19.3.1", jsdom: "31.0.1" };
  return installClients({ name: "langgraph-react", dependencies: { "@langchain/react": "1.1.0", ...core, ...react } });
}

test("ThreadStream subscribes before the run, and a second page reads the past of the thread [V43, V55]", async () => {
  const { url } = await startServer();
  const seen = await runClient("langgraph-v2-client.mjs", [await installStream(), url, token, "events"]);
  const looked = [
    ["human", "look tea"],
    ["ai", "I look. "],
    ["tool", "tea: found"],
    ["ai", "Result: tea: found"],
  ];
  expect(seen).toMatchObject({
    subscribed: true,
    run: "string",
    seen: {
      methods: { values: 4, checkpoints: 4, updates: 3, tools: 2 },
      lifecycle: [
        ["", "running"],
        ["", "completed"],
      ],
      namespaces: [""],
      hasUniqueIds: true,
    },
    values: looked,
    past: ["lifecycle", "values", "values", "values", "values", "lifecycle"],
    inner: {
      lifecycle: [
        ["", "running"],
        [expect.stringMatching(/^tools:call_/), "started"],
        [expect.stringMatching(/^tools:call_/), "completed"],
        ["", "completed"],
      ],
      hasUniqueIds: true,
    },
    tree: ["completed", [[[expect.stringMatching(/^tools:call_/)], "researcher"]]],
    checkpoints: [7, 6],
    state: 8,
  });
});

test("ThreadStream reads texts and tools, exactly the second text of a failed request, and a failure [V32, V34, V55]", async () => {
  const { url } = await startServer();
  const seen = await runClient("langgraph-v2-client.mjs", [await installStream(), url, token, "texts"]);
  expect(seen).toMatchObject({
    looked: [
      ["I look. ", null],
      ["Result: tea: found", null],
    ],
    calls: [["look", { at: "tea" }, "tea: found"]],
    retracted:
      "message-start|one |two |three |four |five |error|message-start|You |said: |retract|content-block-finish|message-finish",
    second: "You said: retract",
    failed: { event: "failed", error: expect.stringMatching(/^node_failed: /) },
  });
  expect(JSON.stringify(seen["failed"])).not.toContain("sk-123");
});

test("ThreadStream answers an interrupt from a second page with edited arguments, once and by its id [V30, V45, V55]", async () => {
  const { url } = await startServer();
  const seen = await runClient("langgraph-v2-client.mjs", [await installStream(), url, token, "answers"]);
  const requests = [
    { name: "pay", args: { amount: 1 } },
    { name: "pay", args: { amount: 2 } },
  ];
  expect(seen).toMatchObject({
    interrupted: [true, [{ action_requests: requests }]],
    wrong: "no_such_interrupt",
    answered: [
      ["tool", "paid 7", "success"],
      ["tool", expect.stringContaining("too much"), "error"],
      ["ai", expect.stringContaining("Result: "), null],
    ],
    again: "no_such_interrupt",
    unknown: "no_such_checkpoint",
  });
});

const whole = z.object({ texts: z.array(z.tuple([z.string(), z.unknown()])) });

test("ThreadStream reads the whole answer of a server that is killed in the middle of it [V43, V55]", async () => {
  const server = await startServer();
  server.say(20);
  const args = [await installStream(), server.url, token, "kill"];
  const seen = await runClient("langgraph-v2-client.mjs", args, async ({ name, value }) => {
    if (name !== "word" || value !== 20) return;
    await server.replace();
    server.say(60);
  });
  expect(seen["whole"]).toMatchObject({
    lifecycle: [
      ["", "running"],
      ["", "running"],
      ["", "completed"],
    ],
    hasUniqueIds: true,
    values: [
      ["human", "long"],
      ["ai", words],
    ],
  });
  expect(whole.parse(seen["whole"]).texts).toEqual([
    [words.slice(0, words.indexOf("w21")), "retracted"],
    [words, null],
  ]);
});

test("ThreadStream reads each word once when its connection is cut every few words [V43]", async () => {
  const server = await startServer();
  server.say(1);
  const args = [await installStream(), server.url, token, "cuts"];
  const seen = await runClient("langgraph-v2-client.mjs", args, ({ name }) => {
    if (name === "word") server.say(1);
  });
  expect(seen["whole"]).toMatchObject({ cuts: 3, texts: [[words, null]] });
});

test("ThreadStream reads each word once from two processes behind a balancer [V43]", async () => {
  const { urls, say } = await startServers();
  const args = [await installStream(), urls[0], token, "balance", urls[1]];
  const seen = await runClient("langgraph-v2-client.mjs", args, ({ name, value }) => {
    if (name === "say") say(Number(value));
  });
  expect(seen["whole"]).toMatchObject({
    texts: [[words, null]],
    lifecycle: [
      ["", "running"],
      ["", "completed"],
    ],
    hasUniqueIds: true,
    values: [
      ["human", "long"],
      ["ai", words],
    ],
  });
  expect(z.object({ requests: z.number() }).parse(seen["whole"]).requests).toBeGreaterThan(4);
});

test("useStream of @langchain/react streams, answers, regenerates, edits, and survives a reload, a kill and a failure [V32, V55]", async () => {
  const server = await startServer();
  const args = [await installPage(), server.url, token];
  const seen = await runClient("langgraph-v2-page.mjs", args, async ({ name, value }) => {
    if (name === "say") server.say(Number(value));
    if (name !== "kill") return;
    await server.replace();
    server.say(60);
  });
  expect(seen).toMatchObject({
    streamed: [
      ["human", "hello"],
      ["ai", "You said: hello"],
    ],
    tools: [["look", { at: "tea" }, "tea: found", "finished"]],
    interrupt: [
      ["pay", { amount: 5 }],
      ["pay", { amount: 6 }],
    ],
    responded: [
      [
        ["ai", ""],
        ["tool", "paid 9"],
        ["tool", expect.stringContaining("too much")],
        ["ai", expect.stringContaining("Result: ")],
      ],
      0,
    ],
    retracted: [
      expect.any(Array),
      [
        ["human", "retract"],
        ["ai", "You said: retract"],
      ],
    ],
    inner: [
      ["human", "ask about ants"],
      ["ai", ""],
      ["tool", "You said: about ants"],
      ["ai", "Result: You said: about ants"],
    ],
    reloaded: [true, 20],
    survived: [
      [
        ["human", "long"],
        ["ai", words],
      ],
      19,
    ],
    failed: expect.stringContaining("node_failed: "),
    error: null,
    stopped: false,
    status: "idle",
    regenerated: [
      ["human", "hello"],
      ["ai", "You said: hello"],
    ],
    edited: [
      ["human", "an edit"],
      ["ai", "You said: an edit"],
    ],
  });
  const shown = z.array(z.string()).parse(seen["shown"]);
  // Each text on the screen is the beginning of the answer: no word came twice.
  expect(shown.filter((text) => !words.startsWith(text))).toEqual([]);
});
