/** The tool `ask_user`: a question to a person. The run waits for the answer, which is the result. */
import { type DefinedTool, defineTool, jsonSchemaInput } from "@statewright/core";

/** What the model gives to `ask_user`. */
export interface AskUserArgs {
  readonly question: string;
  readonly choices?: readonly string[];
}

/** The tool `ask_user`. It has no body: whoever shows the run answers the question that stands under the tool's name. */
export function askUser(): DefinedTool<"ask_user", AskUserArgs> {
  return defineTool({
    name: "ask_user",
    label: "Question",
    description: "Ask the person a question and wait for the answer. Ask only what nobody but the person can know.",
    input: jsonSchemaInput<AskUserArgs>({
      type: "object",
      properties: {
        question: { type: "string", minLength: 1, description: "The question, in one or two sentences." },
        choices: {
          type: "array",
          maxItems: 10,
          items: { type: "string", description: "One answer." },
          description: "Answers to choose from, where there are few.",
        },
      },
      required: ["question"],
      additionalProperties: false,
    }),
    effect: "pure",
    safety: { access: "read", filesystem: "none" },
  });
}
