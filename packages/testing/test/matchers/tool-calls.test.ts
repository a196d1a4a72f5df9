import { call, say, scriptedModel } from "@statewright/testing";
import { testRun } from "@statewright/testing/vitest";
import { describe, expect, test } from "vitest";
import { lookUp, office, words } from "../support/claims-graph.ts";

async function runLetterTool() {
  const model = scriptedModel([
    [call("look_up", { id: "7" }), call("look_up", { id: "8" })],
    call("send_mail", { to: "Ann", text: "" }),
    call("send_mail", { to: "Ann", text: "Paid" }),
    say("Done"),
  ]);
  const t = await testRun(office, { input: words, model });
  await t.finish();
  return t;
}

const look = (id: string) => ({ name: "look_up", args: { id } }) as const;
const mail = { name: "send_mail", args: { to: "Ann", text: expect.any(String) } } as const;

describe("toHaveCalledTools", () => {
  test("toHaveCalledTools compares in five ways, with exact arguments or matchers", async () => {
    const t = await runLetterTool();
    expect(t).toHaveCalledTools([look("7"), look("8"), mail]);
    expect(t).toHaveCalledTools([{ name: "look_up" }, { name: "look_up" }, { name: "send_mail" }]);
    expect(t).toHaveCalledTools([look("7"), mail], { mode: "in-order" });
    expect(t).toHaveCalledTools([mail, look("8"), look("7")], { mode: "unordered" });
    expect(t).toHaveCalledTools([look("8")], { mode: "superset" });
    expect(t).toHaveCalledTools([mail, look("8"), look("7"), look("9")], { mode: "subset" });
    // One matcher accepts both calls: each expectation still matches a separate call.
    expect(t).toHaveCalledTools([{ name: "look_up" }, look("7"), mail], { mode: "unordered" });
    expect(t).not.toHaveCalledTools([look("7")]);
    expect(t).not.toHaveCalledTools([look("8"), look("7")], { mode: "in-order" });
    expect(t).not.toHaveCalledTools([look("7"), look("7")], { mode: "superset" });
    expect(t).not.toHaveCalledTools([look("7"), look("8")], { mode: "subset" });
  });

  test("toHaveCalledTools takes calls of a tool, whose arguments the compiler checks [FX34]", async () => {
    const model = scriptedModel([call(lookUp, { id: "7" }), say("Done")]);
    const t = await testRun(office, { input: words, model });
    await t.finish();
    expect(t).toHaveCalledTools([call(lookUp, { id: "7" })]);
    expect(t).toHaveCalledTools([call(lookUp, { id: expect.stringMatching(/^\d$/) })]);
    // @ts-expect-error the argument is called id
    expect(t).not.toHaveCalledTools([call(lookUp, { customer: "7" })]);
    // @ts-expect-error the argument is missing
    expect(t).not.toHaveCalledTools([call(lookUp, {})]);
    // @ts-expect-error the id is a text
    expect(t).not.toHaveCalledTools([call(lookUp, { id: 7 })]);
    expect(() => expect(t).toHaveCalledTools([call(lookUp, { id: "8" })])).toThrow(
      expect.objectContaining({
        message: expect.stringContaining('call 1 differs: expected look_up {"id":"8"}, found look_up {"id":"7"}'),
        expected: [{ name: "look_up", args: { id: "8" } }],
      }),
    );
  });

  test("toHaveCalledTools names the first different call and failed calls", async () => {
    const t = await runLetterTool();
    expect(() => expect(t).toHaveCalledTools([look("7"), look("9"), mail])).toThrowErrorMatchingInlineSnapshot(`
      [Error: call 2 differs: expected look_up {"id":"9"}, found look_up {"id":"8"} (args.id is "8", not "9").
      The calls:
        1. look_up {"id":"7"}
        2. look_up {"id":"8"}
        3. send_mail {"to":"Ann","text":"Paid"}
      The path: start → model → tools → model → tools → model → tools → model → done
      The run is done and accepts no more events.
      send_mail was refused: invalid_args
      send_mail failed: The arguments of "send_mail" are invalid: text: Too small: expected string to have >=1 characters.]
    `);
    expect(() => expect(t).toHaveCalledTools([look("7")])).toThrowErrorMatchingInlineSnapshot(`
      [Error: call 2 is unexpected: look_up {"id":"8"}, where 1 call is expected.
      The calls:
        1. look_up {"id":"7"}
        2. look_up {"id":"8"}
        3. send_mail {"to":"Ann","text":"Paid"}
      The path: start → model → tools → model → tools → model → tools → model → done
      The run is done and accepts no more events.
      send_mail was refused: invalid_args
      send_mail failed: The arguments of "send_mail" are invalid: text: Too small: expected string to have >=1 characters.]
    `);
    expect(() => expect(t).toHaveCalledTools([look("7"), look("8"), mail, mail])).toThrowErrorMatchingInlineSnapshot(`
      [Error: call 4 is missing: expected send_mail {"to":"Ann","text":"Any<String>"}, and the run made 3 calls.
      The calls:
        1. look_up {"id":"7"}
        2. look_up {"id":"8"}
        3. send_mail {"to":"Ann","text":"Paid"}
      The path: start → model → tools → model → tools → model → tools → model → done
      The run is done and accepts no more events.
      send_mail was refused: invalid_args
      send_mail failed: The arguments of "send_mail" are invalid: text: Too small: expected string to have >=1 characters.]
    `);
    expect(() =>
      expect(t).toHaveCalledTools([mail, look("7")], { mode: "in-order" }),
    ).toThrowErrorMatchingInlineSnapshot(`
      [Error: look_up {"id":"7"} was not called after send_mail {"to":"Ann","text":"Any<String>"}; it was call 1, too early.
      The calls:
        1. look_up {"id":"7"}
        2. look_up {"id":"8"}
        3. send_mail {"to":"Ann","text":"Paid"}
      The path: start → model → tools → model → tools → model → tools → model → done
      The run is done and accepts no more events.
      send_mail was refused: invalid_args
      send_mail failed: The arguments of "send_mail" are invalid: text: Too small: expected string to have >=1 characters.]
    `);
    expect(() =>
      expect(t).toHaveCalledTools([look("7"), mail], { mode: "unordered" }),
    ).toThrowErrorMatchingInlineSnapshot(`
      [Error: look_up {"id":"8"} was called and is not expected.
      The calls:
        1. look_up {"id":"7"}
        2. look_up {"id":"8"}
        3. send_mail {"to":"Ann","text":"Paid"}
      The path: start → model → tools → model → tools → model → tools → model → done
      The run is done and accepts no more events.
      send_mail was refused: invalid_args
      send_mail failed: The arguments of "send_mail" are invalid: text: Too small: expected string to have >=1 characters.]
    `);
    expect(() => expect(t).toHaveCalledTools([look("9")], { mode: "superset" })).toThrowErrorMatchingInlineSnapshot(`
      [Error: look_up {"id":"9"} was not called; it was called with {"id":"7"}.
      The calls:
        1. look_up {"id":"7"}
        2. look_up {"id":"8"}
        3. send_mail {"to":"Ann","text":"Paid"}
      The path: start → model → tools → model → tools → model → tools → model → done
      The run is done and accepts no more events.
      send_mail was refused: invalid_args
      send_mail failed: The arguments of "send_mail" are invalid: text: Too small: expected string to have >=1 characters.]
    `);
    expect(() =>
      expect(t).toHaveCalledTools([look("7"), look("8")], { mode: "subset" }),
    ).toThrowErrorMatchingInlineSnapshot(`
      [Error: send_mail {"to":"Ann","text":"Paid"} was called and is not expected.
      The calls:
        1. look_up {"id":"7"}
        2. look_up {"id":"8"}
        3. send_mail {"to":"Ann","text":"Paid"}
      The path: start → model → tools → model → tools → model → tools → model → done
      The run is done and accepts no more events.
      send_mail was refused: invalid_args
      send_mail failed: The arguments of "send_mail" are invalid: text: Too small: expected string to have >=1 characters.]
    `);
    expect(() =>
      expect(t).not.toHaveCalledTools([look("8")], { mode: "superset" }),
    ).toThrowErrorMatchingInlineSnapshot(`
      [Error: the run made all of these calls, and should not.
      The calls:
        1. look_up {"id":"7"}
        2. look_up {"id":"8"}
        3. send_mail {"to":"Ann","text":"Paid"}
      The path: start → model → tools → model → tools → model → tools → model → done
      The run is done and accepts no more events.
      send_mail was refused: invalid_args
      send_mail failed: The arguments of "send_mail" are invalid: text: Too small: expected string to have >=1 characters.]
    `);
  });
});
