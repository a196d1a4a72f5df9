/** Tool results with the URL of a file instead of its content. */
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { type ContentBlock, defineTool } from "../../../../src/index.ts";
import { call, listToolAnswers, runToolLoop } from "../../../support/tool-loop.ts";

async function answered(
  content: readonly unknown[],
  limits: { readonly resultBytes?: number } = {},
): Promise<readonly ContentBlock[]> {
  const look = defineTool({
    name: "look",
    description: "Look.",
    input: z.object({}),
    effect: "pure",
    run: () => ({ content: content as ContentBlock[] }),
  });
  const [answer] = listToolAnswers(await runToolLoop({ tools: [look], turns: [[call("look")], ["Done"]], limits }));
  return answer?.content ?? [];
}

const photo = { type: "image" as const, mimeType: "image/png", url: "https://a.example/1.png" };

describe("file with a URL in a tool result", () => {
  test("a file with a URL is kept in the answer unchanged", async () => {
    expect(await answered([{ type: "text", text: "Here" }, photo])).toEqual([{ type: "text", text: "Here" }, photo]);
  });

  test("a file with a URL that exceeds the result limit is replaced by a note with its URL", async () => {
    const [first, second] = await answered([{ type: "text", text: "x".repeat(590) }, photo], { resultBytes: 600 });
    expect(JSON.stringify([first, second])).toContain("The image (image/png) is at https://a.example/1.png");
  });

  test("a file whose URL is too long is replaced by a note that says so", async () => {
    const long = { ...photo, url: `https://a.example/${"x".repeat(5_000)}` };
    expect(await answered([long], { resultBytes: 3_000 })).toEqual([
      { type: "text", text: "[The address of the image (image/png) is too long to be shown.]" },
    ]);
  });

  test("a file with an invalid URL is reported as an invalid content block", async () => {
    const [block] = await answered([{ ...photo, url: "1.png" }]);
    expect(block).toMatchObject({ type: "text" });
    expect(JSON.stringify(block)).toContain("an invalid content block (number 1)");
  });
});
