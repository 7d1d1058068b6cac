// Questions as a reader has them: what is asked more than once is one question, with each time that it was asked.
import type { Command, QuestionView } from '../wire';

export interface Question {
  /** Unlike any other's. */
  key: string;
  text: string;
  /** What a person has answered, where somebody has. */
  answer: string | null;
  /** Each time that it was asked, those without an answer first. */
  asked: QuestionView[];
}

/** Puts questions of the same text together; those that wait for an answer come first. */
export function gathered(questions: readonly QuestionView[]): Question[] {
  const found = new Map<string, Question>();
  for (const view of questions) {
    const key = view.text.trim();
    const known = found.get(key);
    if (known) known.asked.push(view);
    else found.set(key, { key, text: view.text, answer: null, asked: [view] });
  }
  const all = [...found.values()];
  for (const one of all) {
    one.asked.sort((a, b) => Number(a.answer != null) - Number(b.answer != null));
    one.answer = one.asked[0]?.answer ?? null;
  }
  return [...all.filter((one) => one.answer === null), ...all.filter((one) => one.answer !== null)];
}

/** The command that answers it. */
export function answering(view: QuestionView, text: string): Command {
  // What begins with a dash is an answer too.
  return { label: 'Answer', argv: ['runnerctl', 'answer', view.id, '--', text] };
}

/** The runs in which it was asked, each with how often. */
export function runsOf(question: Question): [run: string, times: number][] {
  const runs = new Map<string, number>();
  for (const view of question.asked) runs.set(view.run, (runs.get(view.run) ?? 0) + 1);
  return [...runs];
}
