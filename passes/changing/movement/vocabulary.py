"""The words that the rules know; everything else is refused by them.

Plain data. Lower case; a word is in one form only unless its forms are listed.
"""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# An instruction begins with one of these, in the imperative.
VERBS = _words("""
    award cap deduct finish guard penalise penalize roll
    acknowledge act add address adhere adopt advise aim allocate allow analyse analyze annotate
    answer apologise apologize appeal apply approve argue arrange ask assess assign assume attach
    attribute audit avoid balance base be begin benchmark block bold borrow box brainstorm break
    brief bring build bullet calculate call capitalize capture cast categorise categorize censor
    challenge change characterise characterize chart check choose cite clarify classify clean close
    code combine come comment compare compile compliment comply compose compress compute conclude
    condense condition confirm congratulate connect consider construct consult contain continue
    contrast contribute converse convert convey coordinate copy correct correlate count counter
    cover craft create critique cross-check customise customize deal debate debug decide decline
    decode deduce define delete deliver demonstrate depict derive describe design detail detect
    determine develop devise diagnose differentiate dig direct discard discuss dismiss display
    disregard distinguish dive divide do document don't double double-check draft dramatise
    dramatize draw echo edit elaborate elicit eliminate embed embellish emit empathise empathize
    emphasise emphasize employ emulate enclose encode encourage encrypt end enforce engage enhance
    enrich ensure enumerate equate escape estimate evaluate examine exclude execute exemplify
    exercise expand explain explore expose express extract fact-check factor favor favour fill
    filter finalise finalize find fix flag flesh flip focus follow forecast formalise formalize
    format formulate frame fulfil fulfill gather gauge generate give grade grammar-check greet
    group guess guide help hide highlight honor honour hypothesise hypothesize identify ignore
    illustrate imagine implement improve include incorporate indicate infer inform insert inspect
    instruct interpret interview introduce invent invert investigate invite issue itemise itemize
    iterate join jot judge justify keep label lead lean learn leave leverage limit link lint list
    localise localize locate log look love lower maintain make map mark mask match measure mention
    merge mimic minimise minimize mirror mock model modify motivate name narrate negate negotiate
    never nominate normalise normalize note notify number obey observe offer omit only open opt
    optimise optimize order organise organize outline output overlook paint pair paraphrase parody
    parse pay perform permit persuade phrase pick pinpoint place plan play plot point polish ponder
    populate portray pose position praise predict prefer prefix prepare prescribe present preserve
    pretend prevent print prioritise prioritize probe proceed process produce project promise
    prompt proofread propose prototype prove provide prune publish punctuate put qualify quantify
    query question quiz quote raise rank rate re-write reach read reason reassure rebut recap
    recast recite recognise recognize recommend reconcile reconstruct record redact reduce refactor
    refer reflect reformat reformulate refrain refuse regard rehearse reject relate rely remain
    remove rename render repair repeat rephrase replace reply report represent request research
    reserve resist resolve resort respect respond restate restrict retain retrieve return reuse
    reverse revert review revise reword rewrite rhyme role-play round route run safeguard sanitise
    sanitize satirise satirize satisfy save say scan schedule score screen script scrutinise
    scrutinize search see seek segment select self-check send separate sequence serve set shape
    share shift shorten show sign signal simplify simulate sing size sketch skip slice soften
    solicit solve sort speak specify speculate spell spend splice split spot standardise
    standardize start state stay stick stop stress strip strive structure study subdivide
    substantiate substitute subtract suggest sum summarise summarize supply support suppose
    suppress surface surround survey swap swear synthesise synthesize tabulate tackle tag tailor
    take target teach tell test thank theorise theorize think tidy tie title tokenize trace track
    trade transcribe transform translate transliterate transpose traverse treat triage trim try
    turn type uncover underline understand unify unpack unscramble update use utilise utilize
    validate value vary verify view visualise visualize vote walk warn watch weave weigh welcome
    withhold work wrap write
""")
# They may stand in front of it.
ADVERBS = _words("""
    please kindly carefully briefly concisely clearly simply just always strictly directly first
    importantly accurately faithfully succinctly thoroughly then next finally also lastly second
    third secondly afterwards additionally instead otherwise however and but or so plus once
""")
MODALS = _words("must should may can cannot will would shall needs need has have ought is are")
OPENERS = VERBS | ADVERBS | _words("you your do don't if what which how is does")

# What an answer is called, and so what an instruction may introduce and speak of again.
OUTPUTS = _words("""
    answer answers response responses reply replies output outputs summary summaries result results
    translation translations explanation explanations rating ratings score scores label labels list
    lists table tables bullet bullets sentence sentences word words paragraph paragraphs line lines
    json object objects array arrays key keys value values field fields code function query title
    headline headlines name names email letter essay poem story report review review's analysis
    description descriptions plan outline step steps item items point points question questions quiz
    category categories class classes option options reason reasons reasoning justification
    conclusion tone style language format text comment comments feedback grade verdict decision
    number numbers digit letter rewrite paraphrase headings entry entries tag tags topic topics
    entity entities message tweet post caption slogan section sections markdown xml yaml csv html
    sql abstract introduction minutes
""")

# Words of which a paragraph of instructions has one, where it does not name an argument.
ANCHORS = _words("""
    abstract answer answering answers audience biography bullet bullets caption categories
    categorize category classification classify compose concise csv draft emojis english entities
    essay explanation extract format french generate german grammar haiku headline headlines html
    intent jargon json keywords label labels language latex list markdown outline output outputs
    paragraph paragraphs paraphrase plain poem python query questions quiz rating ratings regex
    rephrase replies reply respond responding response responses rewrite score scores sentence
    sentences sentiment slogan slogans spanish spelling sql story style summaries summarise
    summarize summary tags terms title tone translate translation triples tweet xml yaml
""")

# What is done with a text, and so what a text is followed by for: "the exhibit" is also named by
# "Do not touch the exhibit."
WORK = _words("""
    analyse analyze annotate anonymise anonymize answer argue assess brainstorm break build
    calculate categorise categorize censor check choose cite clarify classify cluster combine
    comment compare compile complete compose compress compute conclude condense confirm convert
    correct count create critique decide decode deduce define derive describe design detect
    determine develop diagnose discuss distinguish draft edit estimate evaluate examine explain
    explore extract fact-check fill filter find fix flag follow format formulate generate give
    grade ground group guess highlight identify implement improve include indicate infer inspect
    interpret judge justify label list localise localize locate map mark mask match mention modify
    name narrate normalise normalize note order outline output paraphrase parse phrase pick point
    polish predict prepare print produce proofread propose prove provide quote rank rate read
    reason recast recommend redact refactor refer reformat reformulate rely remove rephrase replace
    reply report represent research respond restate return reverse review revise reword rewrite
    route say score segment select separate shorten simplify solve sort specify split spot state
    stick structure suggest summarise summarize tag tell title tokenize transcribe transform
    translate transliterate treat underline use verify write
""")

# Of these what is also done with things.
HANDWORK = _words("""
    break build check choose cluster combine count draft fill find fix follow group improve include
    label map mark mask match order point prepare produce read remove replace return reverse save
    segment select separate shorten sort split stick treat use
""")

# How something is said, not what: "it" after "Use a formal tone" is something else.
MANNERS = _words("""
    tone style language voice register manner way format sentence sentences word words paragraph
    paragraphs line lines english french german spanish italian markdown detail brevity case person
    tense spelling grammar accuracy care way order time
""")

# An instruction that stands on its own wherever it is said begins with one of these.
STYLE_VERBS = _words("""
    use avoid answer respond reply be do don't never always return output write keep limit only
    refrain stick
""")

# Text in front of which these labels stand tells what to do; of the second set, in whatever words.
TASK_LABELS = _words("""
    instruction instructions task goal goals objective objectives rules rule requirements
    requirement constraints constraint guidelines guideline note notes important
    warning directive directives restrictions steps criteria
""")
FORM_LABELS = _words("""
    format tone style length audience labels categories classes schema scale rubric language
    intents examples example definitions persona criteria scoring options choices
    glossary queues departments severities priorities sentiments topics tags statuses emotions
""")
TASK_TAGS = _words("""
    instruction instructions task rules requirements constraints guidelines format output_format
    response_format output_instructions formatting goal objective important note notes
    answer_format formatting_instructions output_requirements restrictions directions guidance
""")
FORM_TAGS = _words("""
    schema json_schema labels categories rubric criteria examples example tone style audience scale
    output_schema definitions
""")

# Of arguments with these names "Answer in one word." speaks.
ASKED = _words("question query message request problem input utterance prompt")
ANSWERING = _words("answer answers answering reply respond response")
# An argument's label that begins with one of these only says that it comes.
READING = _words("read consider given here examine see look study")
# What any argument may be called.
GENERIC = _words("""
    text passage input content document email message article review story comment claim statement
    code conversation transcript post tweet essay paragraph sentence report letter ticket
""")
# Of a label's words, those that are no name for what follows.
LABEL_STOPS = _words("""
    the a an of to in is are and or here this that these those following below my your for with
    read given by on as from it be into you are one two three four first second third
""")
# What is the model's own, besides its answer.
YOURS = _words("""
    aim approach argument arguments assessment assumptions audience best calculation calculations
    character choice choices claim claims confidence creativity critique estimate evaluation
    evidence expertise findings goal guess imagination instructions interpretation job judgement
    judgment knowledge objective opinion opinions own persona prediction predictions priority
    purpose readers recommendation recommendations role selection solution sources suggestion
    suggestions task thinking thought thoughts time tools training view voice work working
""")
# What is itself written as instructions to somebody.
DIRECTING = _words("""
    agenda assignment competition contest drill exam examination exercise game guide handbook
    handout homework lesson manual notice policy procedure prompt readme rules script sign survey
    todo to-do tutorial warning worksheet
""")
# A reply may be called that, whatever was asked.
REPLY_LABELS = _words("""
    a ai analysis answer assistant bot changes code conclusion feedback final findings fix json
    judgement judgment label labels model output rating reasoning regex reply response result
    results review score si solution summary tag tags thought thoughts verdict
""")
DETERMINERS = _words("the a an this these into in to as my your")
# Where a noun with its adjectives ends.
ENDS_PHRASE = _words("""
    of that which in to and or for with from into on as is are was by about if when not must should
    may can who whose whether using at than containing based between no counts count means mean
""")
# After these a noun says how something is done.
HOW = _words("in with within under by to as into at like for using on")
