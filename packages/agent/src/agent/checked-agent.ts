/** Types that check the tools of an agent against its state and context, and the script of its model against its tools. */
import type { Tool, ToolRegistry } from "@statewright/core";

/** Error message with the type of the missing part. Every value has `toString`, so that no property is missing. */
interface Missing<Message extends string, Part> {
  readonly toString: () => readonly [Message, Part];
}

/** The tools when the agent has what they inject; otherwise an error message as the type of each other tool. */
export type CheckedTools<State, Context, Tools> = Tools extends
  | readonly Tool<State, Context>[]
  | ToolRegistry<State, Context>
  ? Tools
  : Tools extends readonly unknown[]
    ? { readonly [Index in keyof Tools]: CheckedTool<State, Context, Tools[Index]> }
    : readonly Tool<State, Context>[] | ToolRegistry<State, Context>;

type CheckedTool<State, Context, Given> =
  Given extends Tool<State, Context>
    ? Given
    : Given extends Tool<never, infer Needed>
      ? [Context] extends [Needed]
        ? MissingState<Given>
        : Missing<`\`context\` is required by tool ${ToolName<Given>}`, Needed>
      : Tool<State, Context>;

type MissingState<Given> =
  Given extends Tool<infer Needed, never>
    ? Missing<`the state of the agent lacks channels for tool ${ToolName<Given>}`, Needed>
    : never;
type ToolName<Given> = Given extends { readonly name: infer Name extends string } ? Name : "of this list";

/** The model; an error message for a scripted model that calls a tool of the agent with wrong arguments. */
export type CheckedModel<Model, Tools> = Model extends { readonly script?: infer Calls }
  ? unknown extends Calls
    ? Model
    : Tools extends readonly (infer Each)[]
      ? [ScriptProblem<Calls, Each>] extends [never]
        ? Model
        : ScriptProblem<Calls, Each>
      : Model
  : Model;

/** Calls of tools that the agent does not have are allowed: a test may script an invented tool. */
type ScriptProblem<Call, Tools> = Call extends { readonly name: infer Name; readonly args: infer Args }
  ? [Extract<Tools, { readonly name: Name }>] extends [never]
    ? never
    : Extract<Tools, { readonly name: Name }> extends { readonly given?: infer Given }
      ? unknown extends Given
        ? never
        : CallProblem<Name, Args, NonNullable<Given>>
      : never
  : never;
type CallProblem<Name, Args, Given> = string extends keyof Given | keyof Args
  ? never
  : {
      [Argument in keyof Given | keyof Args]-?: Argument extends keyof Given
        ? Argument extends keyof Args
          ? [Args[Argument]] extends [Given[Argument]]
            ? never
            : `the script calls ${Name & string} with another type of the argument ${Argument & string}`
          : undefined extends Given[Argument]
            ? never
            : `the script calls ${Name & string} without the argument ${Argument & string}`
        : `the script calls ${Name & string} with ${Argument & string}, which is no argument of the tool`;
    }[keyof Given | keyof Args];
