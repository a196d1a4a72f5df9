/** What of a reply is an answer: its text, and the final call, by which a model gives an output where no provider keeps the schema. */
import { finalCallName, type ModelDelta, type ModelReply } from "@statewright/core";

/** A piece of a stream, or a block of a reply, that belongs to the final call. */
type FinalPart<Part> = Part & { readonly type: "call"; readonly name: typeof finalCallName };

/** Whether it is of the final call: that is no call of a tool, but the answer itself. */
export function isFinal<Part extends ModelDelta | ModelReply["content"][number]>(part: Part): part is FinalPart<Part> {
  return part.type === "call" && part.name === finalCallName;
}

/** Whether a reply answers: it calls nothing, or gives the output. */
export function isAnswer({ content }: ModelReply): boolean {
  return content.some((block) => isFinal(block)) || !content.some(({ type }) => type === "call");
}

/** What a reply says, and the output that it gives as JSON. */
export function answerText({ content }: ModelReply): string {
  const said = content.map((block) => (block.type === "text" ? block.text : "")).join("");
  const given = content.flatMap((block) => (isFinal(block) ? [block.raw ?? JSON.stringify(block.args)] : []));
  return [said, ...given].filter((text) => text !== "").join("\n");
}
