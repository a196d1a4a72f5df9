/** The unmodified clients of LangGraph against a server in another process, over TCP, on a SQLite file. */
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { installClients } from "../../../src/clients/install-clients.ts";
import { runClient, startServer, token, words } from "./langgraph-processes.ts";

const core = { "@langchain/core": "1.3.2" };

/** Client sets by the version of the SDK. The newest one has the page with the hook. */
const versions = ["1.15.0", "2.0.0", "1.8.10"] as const;

function install(version: (typeof versions)[number]): Promise<string> {
  const react = { react: "19.3.1", "react-dom": "19.3.1", jsdom: "31.0.1" };
  const more = version === "1.15.0" ? react : {};
  const dependencies = { "@langchain/langgraph-sdk": version, ...core, ...more };
  return installClients({ name: `langgraph-${version}`, dependencies });
}

describe.each(versions)("langgraph-sdk %s", (version) => {
  test("each call of the client returns what a LangGraph server returns [V40, V55]", async () => {
    const { url } = await startServer();
    const seen = await runClient("langgraph-client.mjs", [await install(version), url, token, "calls"]);
    const looked = [
      ["human", "look tea"],
      ["ai", "I look. "],
      ["tool", "tea: found", "success"],
      ["ai", "Result: tea: found"],
    ];
    expect(seen).toMatchObject({
      assistants: ["assistant"],
      assistant: "assistant",
      graph: ["__start__", "model", "tools", "__end__"],
      created: "idle",
      run: ["success", "gate"],
      joined: looked,
      joinStream: { values: looked },
      waited: [...looked, ["human", "hello"], ["ai", "You said: hello"]],
      runs: ["success", "success"],
      searched: [6],
      byGraph: 1,
      updated: "b",
      copied: 6,
      deleted: { status: 404, isSlow: false },
      cancelled: "interrupted",
      failed: ["metadata", "values", "error", { error: "node_failed", message: expect.any(String) }],
      stateless: [
        ["human", "alone"],
        ["ai", "You said: alone"],
      ],
    });
    expect(JSON.stringify(seen["failed"])).not.toContain("sk-123");
    expect(seen["schemas"]).toContainEqual(["input_schema", "object"]);
    expect(seen["streamed"]).toMatchObject({ hasUniqueIds: true, values: looked });
    expect(Object.values(Object(seen["streamed"]).texts)).toEqual(["I look. ", "tea: found", "Result: tea: found"]);
    expect(seen["retracted"]).toEqual([["one two three four five ", "You said: retract"], "You said: retract"]);
    const refused = {
      status: expect.toSatisfy((status) => [404, 405, 409, 422].includes(Number(status))),
      isSlow: false,
    };
    expect(seen["refused"]).toEqual([refused, refused, refused, refused, refused]);
  });

  test("interrupts are answered by decisions, and a thread is forked, edited and changed [V44, V45, V55]", async () => {
    const { url } = await startServer();
    const seen = await runClient("langgraph-client.mjs", [await install(version), url, token, "forks"]);
    const asked = {
      action_requests: [
        { name: "pay", args: { amount: 1 } },
        { name: "pay", args: { amount: 2 } },
      ],
    };
    expect(seen).toMatchObject({
      interrupt: [{ value: asked }],
      waiting: ["interrupted", [1]],
      resumed: [
        ["human", "pay 1 2"],
        ["ai", ""],
        ["tool", "paid 7", "success"],
        ["tool", expect.stringContaining("too much"), "error"],
        ["ai", expect.stringContaining("Result:")],
      ],
      again: { status: 409, isSlow: false },
      history: [
        ["000000000004", "000000000003", "loop", []],
        ["000000000003", "000000000002", "loop", ["model"]],
        ["000000000002", "000000000001", "loop", ["tools"]],
        ["000000000001", "000000000000", "input", ["model"]],
        ["000000000000", null, "input", ["__start__"]],
      ],
      forked: "string",
      forkedState: [["human", "pay 1 2"]],
      edited: [
        ["human", "hello again"],
        ["ai", "You said: hello again"],
      ],
      removed: [["human", "hello again"]],
      clientTool: [["tool", "pick_color"]],
    });
    expect(seen["picked"]).toContain("red");
  });

  test("the requests of Agent Chat UI stream, approve, regenerate and list its threads [V55]", async () => {
    const { url } = await startServer();
    const seen = await runClient("langgraph-client.mjs", [await install(version), url, token, "chatUi"]);
    expect(seen).toEqual({
      info: 200,
      none: 0,
      asked: ["pay"],
      approved: [
        ["tool", "paid 3", "success"],
        ["ai", "Result: paid 3"],
      ],
      second: [
        ["human", "hello"],
        ["ai", "You said: hello"],
      ],
      regenerated: [true, true],
      listed: [true],
    });
  });

  test("a client whose server is killed in the middle of an answer reads the whole answer [V41, V42, V55]", async () => {
    const server = await startServer();
    server.say(20);
    const seen = await runClient(
      "langgraph-client.mjs",
      [await install(version), server.url, token, "kill"],
      async ({ name, value }) => {
        if (name !== "word" || value !== 20) return;
        await server.replace();
        server.say(60);
      },
    );
    expect(seen["whole"]).toMatchObject({
      values: [
        ["human", "long"],
        ["ai", words],
      ],
      hasUniqueIds: true,
    });
    const { texts, events } = z
      .object({ texts: z.record(z.string(), z.string()), events: z.array(z.unknown()) })
      .parse(seen["whole"]);
    expect(Object.values(texts)).toEqual([words.slice(0, words.indexOf("w21")), words]);
    expect(events.at(-1)).toBe("success");
  });

  test("a client whose connection is cut every few words reads each word once [V42]", async () => {
    const server = await startServer();
    server.say(1);
    const seen = await runClient(
      "langgraph-client.mjs",
      [await install(version), server.url, token, "cuts"],
      ({ name }) => {
        if (name === "word") server.say(1);
      },
    );
    const { texts, cuts } = z
      .object({ texts: z.record(z.string(), z.string()), cuts: z.number() })
      .parse(seen["whole"]);
    expect(Object.values(texts)).toEqual([words]);
    expect(cuts).toBeGreaterThan(5);
  });
});

test("useStream streams, answers, regenerates, edits, switches branches, and survives a reload and a kill [V55]", async () => {
  const server = await startServer();
  const folder = await install("1.15.0");
  const seen = await runClient("langgraph-page.mjs", [folder, server.url, token], async ({ name, value }) => {
    if (name === "say") server.say(Number(value));
    if (name !== "kill") return;
    await server.replace();
    server.say(60);
  });
  const hello = [
    ["human", "hello"],
    ["ai", "You said: hello"],
  ];
  const anew = [
    ["human", "a new beginning"],
    ["ai", "You said: a new beginning"],
  ];
  const long = [
    ["human", "long"],
    ["ai", words],
  ];
  expect(seen).toMatchObject({
    streamed: hello,
    interrupt: [["pay", { amount: 5 }]],
    resumed: [
      [
        ["ai", ""],
        ["tool", "paid 5"],
        ["ai", "Result: paid 5"],
      ],
      null,
    ],
    regenerated: ["Result: paid 5", true, 2],
    edited: [
      ...hello,
      ["human", "look at the moon"],
      ["ai", "I look. "],
      ["tool", "at the moon: found"],
      ["ai", "Result: at the moon: found"],
    ],
    switched: [2, 6],
    editedFirst: [anew, 2],
    reopened: anew,
    survived: long,
    errors: [],
  });
  const { texts, shown } = z.object({ texts: z.unknown(), shown: z.array(z.string()) }).parse(seen["reloaded"]);
  expect(texts).toEqual(long);
  // Each text on the screen is the beginning of the answer: no word came twice.
  expect(shown.filter((text) => !words.startsWith(text))).toEqual([]);
});
