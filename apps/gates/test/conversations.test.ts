/** A small share of the random conversations, and the gate of that gate: that the rules of providers find what breaks them. */
import { expect, test } from "vitest";
import { simulateConversations } from "../src/conversations/run-conversations.ts";
import type { Body } from "../src/conversations/wire-format.ts";
import { formats } from "../src/conversations/wire-server.ts";

test("random conversations with steering, aborts, approvals, trimming and provider changes send only valid provider requests", async () => {
  const { violations, requests, happened, fates } = await simulateConversations(40);
  expect(violations).toEqual([]);
  expect(requests).toBeGreaterThan(100);
  for (const deed of ["abort", "crash", "drain", "steer", "followUp", "waiting", "done"])
    expect(happened[deed], deed).toBeGreaterThan(0);
  for (const fate of ["reply", "slow", "cut", "429"]) expect(fates[fate], fate).toBeGreaterThan(0);
}, 120_000);

const call = { type: "tool_use", id: "c1", name: "look", input: {} };
const result = { type: "tool_result", tool_use_id: "c1", content: "seen" };
const anthropic = (...contents: readonly (readonly object[])[]): Body => ({
  max_tokens: 1,
  messages: contents.map((content, index) => ({ role: index % 2 === 0 ? "user" : "assistant", content })),
});
const go = [{ type: "text", text: "go" }];

const chatCall = { id: "c1", type: "function", function: { name: "look", arguments: "{}" } };
const chat = (...messages: readonly object[]): Body => ({ messages: [{ role: "user", content: "go" }, ...messages] });

const said = { type: "function_call", call_id: "c1", name: "look", arguments: "{}" };
const responses = (...input: readonly object[]): Body => ({ model: "gpt", input });

const google = (...contents: readonly object[]): Body => ({ contents });
const googleCall = { role: "model", parts: [{ functionCall: { name: "look", args: {} } }] };

test.each<[string, Body, string | undefined]>([
  ["anthropic", anthropic(go, [call], [result]), undefined],
  ["anthropic", anthropic(go, [call], go), "message 2 answers [] where [c1] are due"],
  ["anthropic", anthropic(go, [call], [...go, result]), "message 2 has an answer behind something else"],
  ["anthropic", anthropic(go, [{ ...call, id: "a:b" }], []), 'message 1 has a call with the id "a:b"'],
  ["anthropic", anthropic(go, [{ type: "text", text: " " }], go), "message 1 has a text without a letter"],
  ["anthropic", anthropic(go, [call]), "the last message is not the user's"],
  ["anthropic", anthropic(go, [{ type: "thinking", thinking: "Hm", signature: "s" }], go), "was not thought here"],
  [
    "chat",
    chat({ role: "assistant", tool_calls: [chatCall] }, { role: "tool", tool_call_id: "c1", content: "" }),
    undefined,
  ],
  ["chat", chat({ role: "assistant", tool_calls: [chatCall] }), "the calls c1 have no answer"],
  ["chat", chat({ role: "tool", tool_call_id: "c1", content: "" }), "which is not called before it"],
  ["chat", chat({ role: "assistant", content: null }), "has neither content nor calls"],
  ["responses", responses(said, { type: "function_call_output", call_id: "c1", output: "" }), undefined],
  ["responses", responses(said, { role: "user", content: [] }), "stands where answers to c1 are due"],
  ["responses", responses({ type: "item_reference", id: "msg_1" }), 'points at "msg_1", which was never said here'],
  [
    "google",
    google({ role: "user", parts: [{ text: "go" }] }, googleCall),
    "has a call without a signature of its own",
  ],
  ["google", google(googleCall), "the first content is not the user's"],
])("what %s refuses is found: %o", (provider, body, problem) => {
  const found = formats[provider]?.open().findProblems(body).join("\n");
  if (problem === undefined) expect(found).toBe("");
  else expect(found).toContain(problem);
});
